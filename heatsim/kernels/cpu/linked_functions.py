"""A decorator for functions that only other compiled functions call: numba makes no machine code for them.

numba translates, optimises and loads each function, and optimises it once more in every function that calls it, in all
that call those, and so on. Of the fifty functions of a kernel Python calls one. The others are optimised alone, so that
their loops become vectors, and once more in the one that Python calls. That saves a third of the time to compile.
"""

import os
from functools import cache
from secrets import token_hex
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering


@cache
def _name_of(process: int) -> str:
    """A name of this process; another one in a process that was forked from it."""
    return token_hex(8)


class _LinkedLibrary(JITCodeLibrary):
    """LLVM code of a function that is linked into that of other functions alone."""

    def finalize(self) -> None:
        """Optimise the function, then add the functions of this kind that it calls, each optimised by itself."""
        called = [library for library in self._linking_libraries if isinstance(library, _LinkedLibrary)]
        self._linking_libraries = [library for library in self._linking_libraries if library not in called]
        super().finalize()
        for library in dict.fromkeys(called):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(NativeLowering):
    """Translates a function to LLVM code."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        # The names of symbols have the numbers that functions and types of records have in this process. Code from the
        # cache, of another process, may have a symbol of that name for another function, and the first one loaded wins.
        state.func_id.unique_id = f"{state.func_id.unique_id}_{_name_of(os.getpid())}"
        super().run_pass(state)
        # numba wants a built-in function to know this one by; calling it fails.
        function = dict[Any, Any]().__getitem__
        state.targetctx.insert_user_function(function, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=function)
        return True


# Steps for what no linked function contains: closures, ``with``, literals in loops, functions to inline, expressions of
# arrays. Each takes time, because numba analyses the variables afterwards. These are names, because other versions of
# numba may lack some of the steps.
_NOT_NEEDED = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteSemanticConstants",
    "DeadBranchPrune",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "NoPythonSupportedFeatureValidation",
    "AnnotateTypes",
    "DumpParforDiagnostics",
}


class _LinkedCompiler(CompilerBase):
    """numba's pipeline with the other last step, without steps that these functions do not need."""

    def define_pipelines(self) -> list[Any]:
        pipeline = PassManager("linked")
        parts = ("define_untyped_pipeline", "define_typed_pipeline", "define_nopython_lowering_pipeline")
        for part in parts:
            pipeline.passes.extend(getattr(DefaultPassBuilder, part)(self.state).passes)
        pipeline.passes = [
            (_LinkedLowering if step is NativeLowering else step, text)
            for step, text in pipeline.passes
            if step.__name__ not in _NOT_NEEDED
        ]
        pipeline.finalize()
        return [pipeline]


def linked(**options: Any) -> Any:
    """A decorator like ``numba.njit(**options)`` for functions that Python never calls."""
    compile_function: Any = njit
    return compile_function(**options, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_LinkedCompiler)
