"""Multigrid for the steady heat equation, matrix-free: operators, their coarse versions, sweeps over them, the V-cycle.

Unknown is one number a cell, the operator that of finite volumes, in W/K a cell:

    (A·T) = ground·T + Σ link·(T − T_neighbour)          over the six neighbours

``link`` is the conductance between two centres, ``ground`` that from a cell to everything whose temperature is known.
Coarse cells are pairs of cells along the axes that conduct strongly, and their operator has seven points again.

References: Trottenberg, Oosterlee & Schüller, *Multigrid* (2001), ch. 2 (cycles) and ch. 5 (semicoarsening);
Adams, Brezina, Hu & Tuminaro, *J. Comput. Phys.* 188 (2003) 593 (polynomial smoothers);
Lottes, *Numer. Linear Algebra Appl.* 30 (2023) e2518 (Chebyshev polynomials of the fourth kind).
"""
