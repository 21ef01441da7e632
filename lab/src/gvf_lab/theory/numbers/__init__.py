"""The numbers of the theory: predicted by formula, enumerated, or simulated.

These modules do not depend on tables and pictures.

    chain, windows              the transitions and windows that the results are about
    prediction                  the mean and variance of an update by formula
    enumeration, simulation     updates by the library's draws and weights: all batches, or many
    bias, consistency, lemma, variance, totals      the numbers of each formal result
"""
