// SPDX-License-Identifier: GPL-2.0-or-later
//
// TORCS, which is under the same licence, loads this file into its process.
//
// The bridge between TORCS 1.3.7 (amd64) and Python: no screen, and no time passes that was not
// asked for. One shared object plays two roles:
//
//  1. Preloaded into torcs-bin, it replaces a few functions: TorcsEntry (no menus), GfTimeClock (a
//     clock that stands still), GLUT (an EGL surface without a window), and above all glutMainLoop:
//     wait for a command, advance the physics, draw, answer.
//  2. As the robot module "lockstep" it drives the only car: it steers as told and keeps a speed.
//
// The headers of TORCS are not part of its package, so fields are found by their byte offsets.
// These hold for one version: Python checks the version, and check() below what is found there.
//
//     g++ -O2 -shared -fPIC -o lockstep.so bridge.cpp -pthread -ldl

#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

// ------------------------------------------------------------------ what Python and TORCS share
// exchange.py has the same layout as a NumPy type; sizes are compared at the start.

constexpr int WIDTH = 128, HEIGHT = 64;  // of the observation
constexpr int SCALE = 4;                 // of the colour picture: that many times larger
constexpr int BLOCK = 1024;              // most actions in one exchange
constexpr double TICK = 0.002;           // seconds of one step of the physics

enum Command : uint32_t { RESET = 0, DRIVE = 1 };
enum Drawing : uint32_t { NOTHING = 0, GREY = 1, COLOUR = 2 };

struct State {
    double time;        // s since the start of the race, a whole number of ticks
    double to_middle;   // m from the middle of the road, > 0: left of it
    double half_width;  // m
    double angle;       // rad, direction of the road minus heading of the car
    double speed;       // m/s, forwards
    double segment;     // number of the piece of road
    double distance;    // m along the road from the starting line
    double steer_lock;  // rad, the angle of the wheels when the steering is 1
    double over;        // 1 when the race has ended, from where only a reset leads
};

struct Exchange {
    uint32_t command;         // to TORCS
    uint32_t count;           // actions, at most BLOCK; 0: only draw
    uint32_t ticks;           // steps of the physics for one action
    uint32_t draw;            // what to draw after the last action
    float speed;              // m/s to keep
    float steering[BLOCK];    // > 0: left
    double length;            // from TORCS: m, of the track
    State states[BLOCK];      // after each action; after a reset, the first
    uint8_t grey[HEIGHT][WIDTH];
    uint8_t colour[SCALE * HEIGHT][SCALE * WIDTH][3];
};

static Exchange *shared;
static int channel = -1;       // a socket: one byte in is a command, one byte out its answer
static int parent = 0;         // process id of Python
static char folder[4096];      // of this process alone, removed at the end

// ------------------------------------------------------------------ ends

static int remove_entry(const char *path, const struct stat *, int, struct FTW *) {
    remove(path);
    return 0;
}

[[noreturn]] static void leave(int status) {
    // FTW_PHYS: the folder has links to what belongs to the system, and those must not be followed.
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(status);
}

[[noreturn]] static void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fflush(stdout);
    fputs("torcs-lockstep: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    _exit(3);  // Python reads the message, and removes the folder
}

// Python may be killed at any time, with this process waiting, busy or stuck. The kernel's own
// PR_SET_PDEATHSIG is tied to the thread that started us, which may end long before Python does.
static void *watch_parent(void *) {
    while (getppid() == parent) usleep(200000);
    leave(0);
}

__attribute__((constructor)) static void enter() {
    const char *settings = getenv("TORCS_LOCKSTEP");
    if (!settings) return;
    int memory, path = 0;
    sscanf(settings, "%d %d %d %n", &parent, &memory, &channel, &path);
    if (!path || strlen(settings + path) >= sizeof folder) fail("bad TORCS_LOCKSTEP: %s", settings);
    strcpy(folder, settings + path);
    unsetenv("LD_PRELOAD");  // not for what TORCS might start

    // Were we stopped when Python ends, this wakes the watch; otherwise it does nothing.
    prctl(PR_SET_PDEATHSIG, SIGCONT);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, watch_parent, nullptr)) fail("cannot start a thread");

    struct stat size;
    if (fstat(memory, &size) || size.st_size != (off_t)sizeof(Exchange))
        fail("bridge and Python do not fit: %zu bytes of shared memory expected", sizeof(Exchange));
    void *start = mmap(nullptr, sizeof(Exchange), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (start == MAP_FAILED) fail("cannot map the shared memory");
    shared = (Exchange *)start;
}

// ------------------------------------------------------------------ TORCS 1.3.7 on amd64

template <class T> static T &at(void *structure, long offset) {
    return *(T *)((char *)structure + offset);
}

namespace race {  // tRmInfo
enum { SITUATION = 8, TRACK = 16, PARAMETERS = 24, STATE = 56, REFRESH = 168, FILENAME = 256,
       NAME = 264, TIME = 288, RUNNING = 312 };
}
namespace situation {  // tSituation
enum { CARS = 0, STATE = 8, TIME = 40 };
}
namespace car {  // tCarElt
enum { NAME = 4, DRIVER_TYPE = 140, STEER_LOCK = 200, YAW = 348, SPEED = 352, SEGMENT = 544,
       TO_START = 556, TO_MIDDLE = 564, STATE = 576, GEAR = 1344, RPM = 1352, RPM_LIMIT = 1356,
       GEARS = 1420, STEER = 1536, ACCELERATE = 1540, BRAKE = 1544, CLUTCH = 1548, SHIFT = 1552 };
}
namespace segment {  // tTrackSeg
enum { NUMBER = 8, TYPE = 12, WIDTH = 28, FROM_START = 40, RADIUS = 44, ANGLE = 120 };
enum { RIGHT = 1, LEFT = 2, STRAIGHT = 3 };
}
namespace track {  // tTrack
enum { LENGTH = 56 };
}
enum { STATE_EVENT_INIT = 1, STATE_PRE_RACE = 3, STATE_RACE = 6 };  // of the race engine
enum { RACE_ENDED = 4 };                                            // of the situation
enum { CAR_OUT = 0xfff };                                           // of the car
enum { HUMAN = 1, ROBOT = 2 };                                      // types of drivers

extern char *ReInfo;  // libraceengine
void ReInit();
void ReInitResults();
void ReStateApply(void *state);
void ReStateManage();
void ReRaceCleanup();
void ssgInit();       // libplibssg
void GfInitClient();  // libtgfclient
void *GfParmReadFile(const char *path, int mode);
const char *GfParmGetStr(void *, const char *section, const char *key, const char *otherwise);

static void *driven;         // the car, a tCarElt
static float steering;       // what it is told
static double clock_now;     // s, the only clock TORCS has

double GfTimeClock() { return clock_now; }

static void *now() { return at<void *>(ReInfo, race::SITUATION); }

static float track_length() { return at<float>(at<void *>(ReInfo, race::TRACK), track::LENGTH); }

// ------------------------------------------------------------------ the robot

static float within(float low, float x, float high) { return fmaxf(low, fminf(high, x)); }

static void drive(int, void *self, void *) {
    at<float>(self, car::STEER) = within(-1, steering, 1);
    // In proportion to what is missing; .15 is about what rolling takes.
    float missing = shared->speed - at<float>(self, car::SPEED);
    at<float>(self, car::ACCELERATE) = within(0, 0.5f * missing + 0.15f, 1);
    at<float>(self, car::BRAKE) = missing < -1 ? within(0, -0.2f * missing, 1) : 0;
    at<float>(self, car::CLUTCH) = 0;

    int gear = at<int>(self, car::GEAR), highest = at<int>(self, car::GEARS) - 2;
    float revolutions = at<float>(self, car::RPM) / at<float>(self, car::RPM_LIMIT);
    if (gear < 1) gear = 1;
    else if (revolutions > 0.85f && gear < highest) ++gear;
    else if (revolutions < 0.40f && gear > 1) --gear;
    at<int>(self, car::SHIFT) = gear;
}

static void new_track(int, void *, void *, void **settings, void *) { *settings = nullptr; }
static void new_race(int, void *self, void *) { driven = self; }
static void end_race(int, void *, void *) {}
static int pit(int, void *, void *) { return 0; }
static void shut_down(int) {}

struct Robot {  // tRobotItf
    void *new_track, *new_race, *end_race, *drive, *pit, *shut_down;
    int index;
};

struct Module {  // tModInfo
    char *name, *description;
    int (*initialise)(int, void *);
    unsigned interface;
    int index, priority, magic;
};

static int initialise(int index, void *robot) {
    *(Robot *)robot = {(void *)new_track, (void *)new_race, (void *)end_race, (void *)drive,
                       (void *)pit, (void *)shut_down, index};
    return 0;
}

extern "C" int lockstep(Module *modules) {
    memset(modules, 0, 10 * sizeof(Module));
    // Copies, since TORCS frees them.
    modules[0] = {strdup("lockstep"), strdup("driven from Python"), initialise, 0, 1, 0, 0};
    return 0;
}

// ------------------------------------------------------------------ starting, advancing, telling

// Replaces the one that opens the menu: the race begins at once.
void TorcsEntry() {
    if (!shared) fail("TORCS_LOCKSTEP is not set: only torcs-lockstep can use this library");
    ssgInit();
    GfInitClient();
    ReInit();
    char path[sizeof folder + 16];
    snprintf(path, sizeof path, "%s/race.xml", folder);
    void *parameters = GfParmReadFile(path, 1);
    if (!parameters) fail("cannot read %s", path);
    at<void *>(ReInfo, race::PARAMETERS) = parameters;
    at<char *>(ReInfo, race::FILENAME) = strdup("lockstep");
    at<const char *>(ReInfo, race::NAME) = GfParmGetStr(parameters, "Header", "name", "");
    ReInitResults();
    ReStateApply((void *)(long)STATE_EVENT_INIT);
}

// Are the fields where we think? Each line would be very unlikely by chance.
static void check() {
    const char *wrong =
        !driven ? "no car"
        : strcmp((char *)driven + car::NAME, "lockstep") ? "another driver"
        : at<int>(driven, car::DRIVER_TYPE) != ROBOT ? "another type of driver"
        : at<int>(now(), situation::CARS) != 1 ? "another number of cars"
        : at<int>(ReInfo, race::STATE) != STATE_RACE ? "another state of the race"
        : !(track_length() > 100) ? "a track of no length"
        : !(at<float>(driven, car::STEER_LOCK) > 0.05f) ? "no steering"
        : nullptr;
    if (wrong) fail("this TORCS is not the 1.3.7 (amd64) that torcs-lockstep knows: found %s", wrong);
}

static bool over() {  // TORCS must not be advanced any more
    return at<int>(now(), situation::STATE) & RACE_ENDED
        || at<int>(ReInfo, race::STATE) != STATE_RACE
        || at<int>(driven, car::STATE) & CAR_OUT;
}

static long ticks() { return lround(at<double>(now(), situation::TIME) / TICK); }

// The race engine takes as many ticks as have passed on its clock. Half a tick more keeps rounding
// away from the decision.
static void advance(int count) {
    clock_now = at<double>(ReInfo, race::TIME) + (count + 0.5) * TICK;
    ReStateManage();
}

static int (*draw_frame)(void *);  // of TORCS
static int draw_nothing(void *) { return 0; }

static void begin() {
    check();
    // A robot that needs long for a lap is thrown out; a human is not.
    at<int>(driven, car::DRIVER_TYPE) = HUMAN;
    at<int>(ReInfo, race::RUNNING) = 1;
    at<double>(ReInfo, race::TIME) = clock_now = 1000;
    // Frames are drawn when asked for, by frame() below, never by the race engine itself.
    at<void *>(ReInfo, race::REFRESH) = (void *)draw_nothing;
    steering = 0;
    // Two seconds of counting down; the last moments one by one, to stop at the very start.
    while (ticks() < -50) advance(25);
    while (at<double>(now(), situation::TIME) < 0) advance(1);
}

static void restart() {
    driven = nullptr;
    ReRaceCleanup();
    at<int>(ReInfo, race::STATE) = STATE_PRE_RACE;
    ReStateManage();
    begin();
}

static void tell(State &state) {
    void *piece = at<void *>(driven, car::SEGMENT);
    int type = at<int>(piece, segment::TYPE);
    // From the beginning of the piece: metres on a straight, radians in a bend.
    double ahead = at<float>(driven, car::TO_START);
    double turned = type == segment::RIGHT ? -ahead : type == segment::LEFT ? ahead : 0;
    double metres = type == segment::STRAIGHT ? ahead : ahead * at<float>(piece, segment::RADIUS);
    double road = at<float>(piece, segment::ANGLE) + turned;

    state.time = ticks() / 500.0;  // a division, so that .1 is the same .1 as everywhere
    state.to_middle = at<float>(driven, car::TO_MIDDLE);
    state.half_width = at<float>(piece, segment::WIDTH) / 2;
    state.angle = remainder(road - at<float>(driven, car::YAW), 2 * M_PI);
    state.speed = at<float>(driven, car::SPEED);
    state.segment = at<int>(piece, segment::NUMBER);
    state.distance = at<float>(piece, segment::FROM_START) + metres;
    state.steer_lock = at<float>(driven, car::STEER_LOCK);
    state.over = over();
}

static void take_action(float action, State &state) {
    if (!over()) {
        long expected = ticks() + shared->ticks;
        steering = action;
        advance(shared->ticks);
        if (ticks() != expected && !over())
            fail("out of step: %ld instead of %u ticks", ticks() - expected + shared->ticks,
                 shared->ticks);
    }
    tell(state);
}

// ------------------------------------------------------------------ a surface without a window

template <class Function> static Function *found(const char *name, void *library = RTLD_NEXT) {
    void *address = dlsym(library, name);
    if (!address) fail("cannot find %s", name);
    return (Function *)address;
}

namespace egl {
using Handle = void *;
static Handle display, configuration, context, surfaces[2];  // small and large
static unsigned (*make_current)(Handle, Handle, Handle, Handle);

enum { END = 0x3038, SURFACE_TYPE = 0x3033, PBUFFER = 1, RENDERABLE_TYPE = 0x3040, OPENGL = 8,
       RED = 0x3024, GREEN = 0x3023, BLUE = 0x3022, DEPTH = 0x3025, SURFACE_WIDTH = 0x3057,
       SURFACE_HEIGHT = 0x3056, SURFACELESS_MESA = 0x31DD, OPENGL_API = 0x30A2 };

[[noreturn]] static void cannot(const char *step) {
    fail("cannot draw without a screen (%s): apt-get install -y libegl1 libgl1-mesa-dri", step);
}

static void open() {
    void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) cannot("no libEGL.so.1");
    auto address = found<Handle(const char *)>("eglGetProcAddress", library);
    auto initialise = found<unsigned(Handle, int *, int *)>("eglInitialize", library);
    auto bind = found<unsigned(unsigned)>("eglBindAPI", library);
    auto choose =
        found<unsigned(Handle, const int *, Handle *, int, int *)>("eglChooseConfig", library);
    auto surface = found<Handle(Handle, Handle, const int *)>("eglCreatePbufferSurface", library);
    auto create = found<Handle(Handle, Handle, Handle, const int *)>("eglCreateContext", library);
    make_current = found<unsigned(Handle, Handle, Handle, Handle)>("eglMakeCurrent", library);
    auto platform = (Handle(*)(unsigned, Handle, const int *))address("eglGetPlatformDisplayEXT");

    display = platform ? platform(SURFACELESS_MESA, nullptr, nullptr) : nullptr;
    if (!display || !initialise(display, nullptr, nullptr)) cannot("eglInitialize");
    bind(OPENGL_API);
    const int wanted[] = {SURFACE_TYPE, PBUFFER, RENDERABLE_TYPE, OPENGL, RED, 8, GREEN, 8, BLUE, 8,
                          DEPTH, 24, END};
    int count = 0;
    if (!choose(display, wanted, &configuration, 1, &count) || !count) cannot("eglChooseConfig");
    for (int i = 0; i < 2; ++i) {
        int times = i ? SCALE : 1;
        const int size[] = {SURFACE_WIDTH, times * WIDTH, SURFACE_HEIGHT, times * HEIGHT, END};
        surfaces[i] = surface(display, configuration, size);
        if (!surfaces[i]) cannot("eglCreatePbufferSurface");
    }
    context = create(display, configuration, nullptr, nullptr);
    if (!context) cannot("eglCreateContext");
}

static void use(bool large) {
    Handle surface = surfaces[large];
    if (!make_current(display, surface, surface, context)) cannot("eglMakeCurrent");
}
}  // namespace egl

// ------------------------------------------------------------------ drawing

static int scale = 1;  // of the picture being drawn

// TORCS sets it once a frame, to the size that it believes its window has.
extern "C" void glViewport(int x, int y, int width, int height) {
    static auto real = found<void(int, int, int, int)>("glViewport");
    real(scale * x, scale * y, scale * width, scale * height);
}

// Pixels of the frame as it is now, from the bottom row to the top, RGBA.
static const uint8_t (*frame(int times))[4] {
    static uint8_t pixels[SCALE * HEIGHT * SCALE * WIDTH][4];
    static auto read = found<void(int, int, int, int, unsigned, unsigned, void *)>("glReadPixels");
    constexpr unsigned RGBA = 0x1908, UNSIGNED_BYTE = 0x1401;
    scale = times;
    draw_frame(now());
    read(0, 0, times * WIDTH, times * HEIGHT, RGBA, UNSIGNED_BYTE, pixels);
    scale = 1;
    return pixels;
}

static void draw_grey() {
    auto pixel = frame(1);
    for (int y = HEIGHT - 1; y >= 0; --y)
        for (int x = 0; x < WIDTH; ++x, ++pixel)  // luma, Rec. 601
            shared->grey[y][x] = (77 * (*pixel)[0] + 150 * (*pixel)[1] + 29 * (*pixel)[2]) >> 8;
}

// On a surface of its own: on a part of a larger one, small pictures come out a little different.
static void draw_colour() {
    egl::use(true);
    auto pixel = frame(SCALE);
    for (int y = SCALE * HEIGHT - 1; y >= 0; --y)
        for (int x = 0; x < SCALE * WIDTH; ++x, ++pixel) memcpy(shared->colour[y][x], *pixel, 3);
    egl::use(false);
}

// ------------------------------------------------------------------ the loop

extern "C" void glutMainLoop() {
    // TORCS has loaded track and car, and is on the grid.
    draw_frame = at<int (*)(void *)>(ReInfo, race::REFRESH);
    begin();
    shared->length = track_length();
    bool fresh = true;
    for (char byte = 0; send(channel, &byte, 1, MSG_NOSIGNAL) == 1;) {
        if (recv(channel, &byte, 1, 0) != 1) break;
        if (shared->command == RESET) {
            if (!fresh) {
                at<void *>(ReInfo, race::REFRESH) = (void *)draw_frame;
                restart();
            }
            tell(shared->states[0]);
            fresh = true;
        }
        else
            for (uint32_t i = 0; i < shared->count && i < BLOCK; ++i, fresh = false)
                take_action(shared->steering[i], shared->states[i]);
        if (shared->draw == GREY && !over()) draw_grey();
        if (shared->draw == COLOUR && !over()) draw_colour();
    }
    leave(0);  // Python has closed its end
}

// ------------------------------------------------------------------ GLUT without a window

extern "C" {
int glutCreateWindow(const char *) {
    egl::open();
    egl::use(false);
    return 1;
}
void glutReshapeFunc(void (*reshape)(int, int)) { reshape(WIDTH, HEIGHT); }
void *glXGetCurrentContext() { return (void *)1; }  // plib asks whether there is any
int glutGet(unsigned) { return 0; }
int glutExtensionSupported(const char *) { return 0; }
int glutGetModifiers() { return 0; }
int glutGameModeGet(unsigned) { return 0; }
int glutEnterGameMode() { return 0; }
#define NOTHING_TO_DO(name) \
    void name() {}
NOTHING_TO_DO(glutInit)
NOTHING_TO_DO(glutInitDisplayMode)
NOTHING_TO_DO(glutInitDisplayString)
NOTHING_TO_DO(glutInitWindowPosition)
NOTHING_TO_DO(glutInitWindowSize)
NOTHING_TO_DO(glutDisplayFunc)
NOTHING_TO_DO(glutIdleFunc)
NOTHING_TO_DO(glutKeyboardFunc)
NOTHING_TO_DO(glutKeyboardUpFunc)
NOTHING_TO_DO(glutSpecialFunc)
NOTHING_TO_DO(glutSpecialUpFunc)
NOTHING_TO_DO(glutMouseFunc)
NOTHING_TO_DO(glutMotionFunc)
NOTHING_TO_DO(glutPassiveMotionFunc)
NOTHING_TO_DO(glutPostRedisplay)
NOTHING_TO_DO(glutSwapBuffers)
NOTHING_TO_DO(glutTimerFunc)
NOTHING_TO_DO(glutSetCursor)
NOTHING_TO_DO(glutWarpPointer)
NOTHING_TO_DO(glutFullScreen)
NOTHING_TO_DO(glutLeaveGameMode)
NOTHING_TO_DO(glutGameModeString)
}
