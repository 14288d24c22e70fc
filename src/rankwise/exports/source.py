"""The ranker as a function in plain Python or C, without dependencies.

The first section lists the names that a function in C cannot have: a function called ``log`` compiles, and then
replaces the library's ``log`` in the whole program.
"""

import builtins
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

import numpy as np

from rankwise._errors import RankwiseError
from rankwise.data.checks import Floats
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.curves import CurveSum
from rankwise.exports.formula import Formula, TreeSum, WeightedSum
from rankwise.exports.kernel_sums import KernelSum
from rankwise.exports.map_sums import CTables, MapSum, rows_of, table_of
from rankwise.exports.networks import c_network, python_network, score_c_network
from rankwise.exports.products import ProductSum
from rankwise.exports.smooth_sums import NetworkSum
from rankwise.exports.source_tables import c_trees, python_trees, score_c_trees
from rankwise.exports.waves import FourierSum
from rankwise.measures._base import Vector

# -------------------------------------------------------------------------------------------------- names in C

# Keywords of C89 to C23, and those that compilers add outside of their strict modes.
_KEYWORDS = (
    "alignas alignof asm auto bool break case char const constexpr continue default do double else enum extern "
    "false float for fortran goto if inline int long main nullptr register restrict return short signed sizeof "
    "static static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void "
    "volatile wchar_t while"
)
_WORDS = frozenset(_KEYWORDS.split())
# Macros that compilers define without an underscore.
_MACROS = frozenset(["hpux", "i386", "linux", "m68k", "mips", "pyr", "sequent", "sgi", "sparc", "sun", "unix", "vax"])
# Functions and objects with external linkage: ISO/IEC 9899:2018, annex B, and C23's additions.
_MATHS = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor "
    "fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan "
    "nearbyint nextafter nexttoward pow remainder remquo rint round roundeven scalbln scalbn sin sinh sqrt tan tanh "
    "tgamma trunc cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal "
    "csin csinh csqrt ctan ctanh"
)
_OTHERS = (
    "abort abs aligned_alloc asctime at_quick_exit atexit atof atoi atol atoll btowc bsearch calloc call_once "
    "clearerr clock ctime difftime div errno exit fclose feclearexcept fegetenv fegetexceptflag fegetround "
    "feholdexcept feof feraiseexcept ferror fesetenv fesetexceptflag fesetround fetestexcept feupdateenv fflush "
    "fgetc fgetpos fgets fgetwc fgetws fopen fprintf fputc fputs fputwc fputws fread free free_sized freopen "
    "fscanf fseek fsetpos ftell fwide fwprintf fwrite fwscanf getc getchar getenv gets getwc getwchar gmtime "
    "gmtime_r imaxabs imaxdiv isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace "
    "isupper isxdigit iswalnum iswalpha iswblank iswcntrl iswctype iswdigit iswgraph iswlower iswprint iswpunct "
    "iswspace iswupper iswxdigit labs ldiv llabs lldiv localeconv localtime localtime_r longjmp malloc mblen "
    "mbrlen mbrtoc16 mbrtoc32 mbrtoc8 mbrtowc mbsinit mbsrtowcs mbstowcs mbtowc memccpy memchr memcmp memcpy "
    "memmove memset memset_explicit mktime perror printf putc putchar puts putwc putwchar qsort quick_exit raise "
    "rand realloc remove rename rewind scanf setbuf setjmp setlocale setvbuf signal snprintf sprintf srand sscanf "
    "stderr stdin stdout strcat strchr strcmp strcoll strcpy strcspn strdup strerror strfromd strfromf strfroml "
    "strftime strlen strncat strncmp strncpy strndup strpbrk strrchr strspn strstr strtod strtof strtok strtol "
    "strtold strtoll strtoul strtoull strxfrm swprintf swscanf system time timegm timespec_get timespec_getres "
    "tmpfile tmpnam tolower toupper towctrans towlower towupper ungetc ungetwc vfprintf vfscanf vfwprintf "
    "vfwscanf vprintf vscanf vsnprintf vsprintf vsscanf vswprintf vswscanf vwprintf vwscanf wcrtomb wcscat wcschr "
    "wcscmp wcscoll wcscpy wcscspn wcsftime wcslen wcsncat wcsncmp wcsncpy wcspbrk wcsrchr wcsrtombs wcsspn "
    "wcsstr wcstod wcstof wcstok wcstol wcstold wcstoll wcstombs wcstoul wcstoull wcsxfrm wctob wctomb wctrans "
    "wctype wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf wscanf"
)
# Symbols of the systems that C programs run on, which every program uses.
_SYSTEM = "alloca close end environ etext edata fork index j0 j1 jn link open pipe read select write y0 y1 yn"
_LIBRARY = {name + kind for name in _MATHS.split() for kind in ("", "f", "l")}.union(_OTHERS.split(), _SYSTEM.split())


def reason_against(name: str) -> str | None:
    """Why a function in C cannot have this name.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    str or None
        The reason; None where the name is allowed.

    Examples
    --------
    >>> reason_against("log")
    'a function of the standard library is called so'
    >>> reason_against("score") is None
    True
    """
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return "names are letters, digits and _"
    if name.startswith("_"):
        return "names that begin with _ belong to the compiler and its libraries"
    if name in _WORDS:
        return "it is a word of the language"
    if name in _MACROS:
        return "some compilers define it as a macro"
    if name in _LIBRARY:
        return "a function of the standard library is called so"
    return None


_MAP_SUMS: tuple[type[MapSum], ...] = (FourierSum, KernelSum, ProductSum, CurveSum)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The names beside the function in Python.
_TABLES = (
    *("FEATURES", "_WEIGHTS", "_STEPS"),
    *("_ROOTS", "_NODES", "_LEAVES", "_SETS"),
    *("_CENTER", "_SCALE", "_LAYERS", "_LAST", "_LINEAR"),
    *("_WAVES", "cos", "sin", "_LANDMARKS", "exp", "tanh", "_PRODUCTS", "_CURVES"),
)


@dataclass(frozen=True, kw_only=True)
class Python(Target):
    """``NAME.py``: a function ``NAME(x)`` of a sequence of features, and their names as ``FEATURES``."""

    name = "python"
    title = "Python without dependencies"
    arithmetic = "float64, run by Python"
    takes = (*Target.takes, NetworkSum, MapSum)

    def write(self, formula: Formula | NetworkSum | MapSum, called: str) -> Written:
        """Write the module."""
        _check_python_name(called)
        above = ""
        value = "v if v - v == 0.0 else 0.0" if formula.missing == "zero" else "v"
        if isinstance(formula, TreeSum):
            table, body = python_trees(formula)
        elif isinstance(formula, NetworkSum):
            table, body = python_network(formula, value)
        elif isinstance(formula, MapSum):
            above = f"from math import {', '.join(formula.functions)}\n\n" if formula.functions else ""
            table, body = formula.python(value)
        elif isinstance(formula, WeightedSum):
            own = formula.raw()
            table = f"_WEIGHTS = (\n{rows_of(own.weight)})\n"
            add = f"    s += w * ({value})" if formula.missing == "zero" else "    s += w * v"
            body = [f"s = {own.constant!r}", "for w, v in zip(_WEIGHTS, x):", add, "return s"]
        else:
            steps = zip(formula.feature.tolist(), formula.threshold.tolist(), formula.alpha.tolist(), strict=True)
            rows = "".join(f"    ({place}, {threshold!r}, {alpha!r}),\n" for place, threshold, alpha in steps)
            table = f"_STEPS = (  # feature, threshold, alpha\n{rows})\n"
            loop = ["for f, t, a in _STEPS:", "    v = x[f]", f"    s += a if ({value}) > t else 0.0"]
            body = [f"s = {formula.constant!r}", *loop, "return s"]
        names = "".join(f"    {name!a},\n" for name in formula.names)
        width = len(formula.names)
        lines = "".join(f"    {line}\n" for line in body)
        text = (
            f"{above}FEATURES = (\n{names})\n{table}\n\n"
            f"def {called}(x):\n"
            f'    """The score of a document whose features, in the order of FEATURES, are x."""\n'
            f"    if len(x) != {width}:\n"
            f'        raise ValueError("expected {width} features, found %d" % len(x))\n'
            f"{lines}"
        )
        return Written({f"{called}.py": text}, (_missing(formula),))

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run the function in a namespace of its own; the text is the one that :meth:`write` has just made."""
        ((file, text),) = files.items()
        # without builtins that it does not need: the text holds names from untrusted data
        known = {"len": len, "zip": zip, "int": int, "ValueError": ValueError, "__import__": _only_math}
        namespace: dict[str, Any] = {"__builtins__": known}
        exec(text, namespace)
        function = namespace[file.removesuffix(".py")]
        return np.array([function(row) for row in np.asarray(X, dtype=np.float64).tolist()], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class C(Target):
    """``NAME.c``: ``double NAME(const double *x)``, and the names of features as ``NAME_features[NAME_width]``."""

    name = "c"
    title = "C without dependencies"
    arithmetic = "float64, feature after feature (C without contraction)"
    takes = (*Target.takes, NetworkSum, MapSum)

    def write(self, formula: Formula | NetworkSum | MapSum, called: str) -> Written:
        """Write the source file."""
        reason = reason_against(called)
        if reason is not None:
            raise RankwiseError(f"{called!r:.60} cannot be the name of a function of C: {reason}")
        value = "(v - v == 0.0 ? v : 0.0)" if formula.missing == "zero" else "v"
        if isinstance(formula, TreeSum):
            tables, body = c_trees(formula, called)
        elif isinstance(formula, NetworkSum):
            tables, body = c_network(formula, called, value)
        elif isinstance(formula, MapSum):
            tables, body = formula.c(called, value)
        elif isinstance(formula, WeightedSum):
            own = formula.raw()
            tables = f"static const double {called}_weight[] = {{\n{rows_of(own.weight)}}};\n"
            loop = ["double v = x[i];", f"s += {called}_weight[i] * {value};"]
            body = _c_loop(own.constant, len(own.weight), loop)
        else:
            count = len(formula.alpha)
            feature, threshold, alpha = (
                values if count else [0] for values in (formula.feature, formula.threshold, formula.alpha)
            )
            tables = (
                f"static const int {called}_feature[] = {{\n{rows_of(feature)}}};\n"
                f"static const double {called}_threshold[] = {{\n{rows_of(threshold)}}};\n"
                f"static const double {called}_alpha[] = {{\n{rows_of(alpha)}}};\n"
            )
            loop = [
                f"double v = x[{called}_feature[i]];",
                f"if ({value} > {called}_threshold[i]) s += {called}_alpha[i];",
            ]
            body = _c_loop(formula.constant, count, loop)
        names = "".join(f"    {c_text(name)},\n" for name in formula.names)
        width = len(formula.names)
        lines = "".join(f"    {line}\n" for line in body)
        above = "#include <math.h>\n\n" if isinstance(formula, MapSum) else ""
        text = (
            f"/* The score of a document with {width} features in the order of {called}_features; a higher one comes\n"
            f"   first. Compile without -ffast-math, and with -ffp-contract=off for the same bits everywhere. */\n\n"
            f"{above}const int {called}_width = {width};\n"
            f"const char *const {called}_features[] = {{\n{names}}};\n\n{tables}\n"
            f"double {called}(const double *x)\n{{\n{lines}}}\n"
        )
        return Written({f"{called}.c": text}, (_missing(formula),))

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run the loop of the text over its own tables, without a compiler."""
        ((file, content),) = files.items()
        called, text, rows = file.removesuffix(".c"), str(content), np.asarray(X, dtype=np.float64)
        if f" {called}_root[]" in text:
            return score_c_trees(text, called, rows)
        if "v - v == 0.0" in text:
            rows = np.where(np.isfinite(rows), rows, 0.0)
        if f" {called}_theta[]" in text:
            return score_c_network(text, called, rows)
        # the constant comes first, as in the loop of the C function
        total = np.full(len(rows), float(text.split("double s = ")[1].split(";")[0]))
        tables = CTables(text, called)
        for kind in _MAP_SUMS:
            if tables.has(kind.mark):
                return total + kind.c_scores(tables, rows)
        if f" {called}_weight[]" in text:
            for place, weight in enumerate(table_of(text, f"{called}_weight")):
                total += weight * rows[:, place]
            return total
        count = int(text.split("i < ")[1].split(";")[0])
        steps = [table_of(text, f"{called}_{name}")[:count] for name in ("feature", "threshold", "alpha")]
        for feature, threshold, alpha in zip(*steps, strict=True):
            total += np.where(rows[:, int(feature)] > threshold, alpha, 0.0)
        return total


def _only_math(name: str, *rest: Any) -> Any:
    """``import`` of a module that may use the functions of ``math`` and no other."""
    if name != "math":
        raise ImportError(f"the function that was written imports math alone: found {name!r:.40}")
    return math


def _c_loop(constant: float, count: int, loop: Sequence[str]) -> list[str]:
    """The body of a function that adds up in one loop."""
    lines = (f"    {line}" for line in loop)
    return [f"double s = {constant!r};", "int i;", f"for (i = 0; i < {count}; i++) {{", *lines, "}", "return s;"]


def c_text(name: str) -> str:
    """A string literal of C: ASCII, every other byte of its UTF-8 by three octal digits, no trigraph."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in name.encode()) + '"'


def _check_python_name(called: str) -> None:
    """Raise an error for a name that Python, or the module that is written, uses for something else."""
    if not _IDENTIFIER.fullmatch(called):
        raise RankwiseError(f"the name of a function of Python is letters, digits and _: found {called!r:.60}")
    # a function called len would call itself in place of the built-in one
    if iskeyword(called) or hasattr(builtins, called) or called in _TABLES or re.fullmatch("__.*__", called):
        raise RankwiseError(f"{called!r:.60} cannot be the name of a function: Python uses it otherwise")


def _missing(formula: Formula | NetworkSum | MapSum) -> str:
    """The note about missing values."""
    if isinstance(formula, TreeSum) and formula.missing != "zero":
        return "NaN goes where the trees of the ranker send it"
    if formula.missing == "zero":
        return "NaN and infinities count 0, as the ranker's missing='zero' has it"
    return "NaN is not looked for: a weighted sum with it is NaN, and it is above no threshold"
