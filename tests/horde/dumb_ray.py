"""A cluster in one process, with the functions of Ray that a horde uses.

Calls wait until an answer is asked for, arguments and answers are pickled, and arrays that arrive
cannot be written to. A worker dies when it is killed, or before a call that a test chooses.
"""

import pickle
from types import SimpleNamespace


class RayActorError(Exception):
    pass


def sent(value):
    """A value as another process gets it."""
    buffers: list = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(buffer) for buffer in buffers])


class Ref:
    def __init__(self, actor, make):
        self.actor, self.make, self.done, self.result = actor, make, False, None

    def value(self):
        self.actor.work(until=self)
        return sent(self.result)


class Stored:
    def __init__(self, value):
        self.kept = sent(value)

    def value(self):
        return sent(self.kept)


class Actor:
    def __init__(self, ray, kind, given):
        self._ray, self._calls, self.dead = ray, [], False
        self._made, self._kind, self._given = None, kind, given
        ray.actors.append(self)

    def __getattr__(self, name):
        def remote(*given):
            def make():
                return getattr(self._made, name)(*map(arrived, given))

            self._ray.asked += 1
            if self._ray.asked in self._ray.interrupt_at:
                raise KeyboardInterrupt
            self._calls.append(Ref(self, make))
            return self._calls[-1]

        return SimpleNamespace(remote=remote)

    def work(self, until):
        while not until.done:
            self._ray.calls += 1
            if self._ray.calls in self._ray.die_before:
                self.dead = True
            if self.dead:
                raise RayActorError("the actor is dead")
            if self._made is None:
                self._made = self._kind(*map(arrived, self._given))
            call = self._calls.pop(0)
            call.result, call.done = sent(call.make()), True


def arrived(value):
    return value.value() if isinstance(value, Stored) else sent(value)


class DumbRay:
    exceptions = SimpleNamespace(RayActorError=RayActorError)

    def __init__(self, die_before=(), interrupt_at=()):
        self.die_before, self.calls, self.actors = set(die_before), 0, []
        self.interrupt_at, self.asked = set(interrupt_at), 0

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return {"CPU": 3.0}

    def put(self, value):
        return Stored(value)

    def get(self, ref):
        if isinstance(ref, Ref) and ref.actor.dead:
            raise RayActorError("the actor is dead")
        return ref.value()

    def wait(self, refs, **options):
        done = [ref for ref in refs if ref.done or ref.actor.dead]
        return done, [ref for ref in refs if ref not in done]

    def kill(self, actor):
        actor.dead = True

    def remote(self, kind):
        class Made:
            @staticmethod
            def options(**given):
                return Made

            @staticmethod
            def remote(*given):
                return Actor(self, kind, given)

        return Made
