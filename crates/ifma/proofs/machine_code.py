"""No branch and no address of the secret functions depends on a secret, in the machine code that the compiler made.

    python3 machine_code.py PROGRAM

PROGRAM is the example `timing`, optimised; its function `leak` shows that the script finds a branch on a secret. Of each
conditional jump, and of each memory operand, the script finds all instructions that may have set the registers involved, back
to constants, arguments that are pointers, and counters: what is loaded from memory, but for spilled registers and constants,
counts as secret. It fails for any other jump or address, for divisions (their time varies), for calls of unknown functions,
and if a function is missing. It compares the stack's slots by their text: a store to the same slot under another name, or by a
wider register, is not seen.
"""

import re
import subprocess
import sys

# Kernels and what they call; each must be there. Names are the demangled ones, without the hash.
SECRET = [
    "weir_ifma::x25519::public_key::public_key",
    "weir_ifma::x25519::shared_secret::shared_secret",
    "weir_ifma::x25519::both::both",
    "weir_ifma::x25519::public",
    "weir_ifma::x25519::shared",
    "weir_ifma::x25519::exchange",
    "weir_ifma::p256::signature::signature",
    "weir_ifma::p256::public::public",
    "weir_ifma::p256::inverse::inverses",
]

# A function with a branch on a secret.
CONTROL = "timing::leak"

# Jumps on secrets that are wanted: function -> (how many, why).
ALLOWED_JUMPS = {
    "weir_ifma::p256::signature::signature": (1, "the caller learns whether the checked signature may leave"),
    "weir_ifma::x25519::shared": (1, "the caller learns whether the secret is zero (RFC 7748, section 6.1)"),
    "weir_ifma::x25519::exchange": (1, "the caller learns whether the secret is zero (RFC 7748, section 6.1)"),
}

# Functions whose time depends on lengths alone, which are constants here.
ALLOWED_CALLS = r"memcpy|memset|memmove"

ALIASES = {
    alias: f"r{name}"
    for names in ("ax eax al ah", "bx ebx bl bh", "cx ecx cl ch", "dx edx dl dh", "si esi sil", "di edi dil", "bp ebp bpl", "sp esp spl")
    for name in [names.split()[0]]
    for alias in [*names.split(), f"r{name}"]
} | {f"r{n}{size}": f"r{n}" for n in range(8, 16) for size in ("", "d", "w", "b")}
CLOBBERED = {"rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"}
ARGUMENTS = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"}
REGISTER = re.compile(r"%(\w+)")
SLOT = re.compile(r"-?(?:0x[0-9a-f]+)?\(%r[sb]p\)")
# They read their last operand and write flags alone.
COMPARISONS = r"(cmp|test|bt)[bwlq]?"
# They write flags and their last operand, from both operands.
ARITHMETIC = r"(add|sub|and|or|xor|shl|shr|sar|sal|inc|dec|neg|imul|adc|sbb|rol|ror|btr|bts|btc)[bwlq]?"
MOVES = r"mov([bwlq]|abs|z[bw][wlq]|s[bwl][wlq]|[sz]x|slq)?"


class Instruction:
    def __init__(self, line):
        self.line = line
        address, text = line.split(":\t", 1)
        self.address = int(address, 16)
        text, _, comment = text.partition("#")
        self.target = (re.search(r"<(.*)>", comment or text) or [None, ""])[1]
        parts = text.split(None, 1)
        while parts and parts[0] in ("notrack", "rep", "repz", "bnd", "cs", "data16", "lock"):
            parts = parts[1].split(None, 1) if len(parts) > 1 else []
        self.name = parts[0] if parts else "nop"
        self.text = text.strip()
        self.operands = split(parts[1].strip()) if len(parts) > 1 else []

    def is_jump(self):
        return self.name.startswith("j")

    def is_conditional(self):
        return self.is_jump() and not self.name.startswith("jmp")

    def writes_flags(self):
        return bool(re.fullmatch(f"{COMPARISONS}|{ARITHMETIC}|mul[xq]?|popcnt.?|[tl]zcnt.?|v?(p?test|u?comis)\\w*|kortest.|ktest.", self.name))


def split(operands):
    """At commas outside of parentheses and braces."""
    return [part.strip() for part in re.split(r",(?![^({]*[)}])", operands)]


def register(operand):
    found = re.fullmatch(r"%(\w+)", operand)
    return ALIASES.get(found[1]) if found else None


def registers_within(operand):
    return {ALIASES[name] for name in REGISTER.findall(operand) if name in ALIASES}


def is_memory(operand):
    return "(" in operand


class Function:
    def __init__(self, name, lines, constants):
        self.name = name
        self.constants = constants
        self.code = [Instruction(line) for line in lines]
        at = {instruction.address: i for i, instruction in enumerate(self.code)}
        self.before = [[] for _ in self.code]
        self.errors = []
        for i, instruction in enumerate(self.code):
            follows = not re.match(r"jmp|ret|ud2|hlt", instruction.name)
            if follows and i + 1 < len(self.code):
                self.before[i + 1].append(i)
            if instruction.is_jump():
                target = re.match(r"([0-9a-f]+) ", f"{' '.join(instruction.operands)} ")
                if target and int(target[1], 16) in at:
                    self.before[at[int(target[1], 16)]].append(i)

    def check(self, known):
        jumps = 0
        for i, instruction in enumerate(self.code):
            name = instruction.name
            if instruction.is_conditional() and (why := self.secret_flags(i)):
                jumps += 1
                self.errors.append(f"jump `{instruction.text}` at {instruction.address:x}: {why}")
            elif name.startswith(("div", "idiv")):
                self.error(instruction, "division")
            elif name.startswith("call") or name.startswith("jmp") and not self.is_within(instruction):
                target = without_hash(instruction.target)
                if target not in known and not re.match(ALLOWED_CALLS, target):
                    self.error(instruction, "call of an unknown function")
            if not re.match(r"lea|nop|call|j", name):
                for operand in filter(is_memory, instruction.operands):
                    for place in registers_within(operand) - {"rsp"}:
                        if why := self.secret(place, i):
                            self.error(instruction, f"address by {place}: {why}")
        allowed, _ = ALLOWED_JUMPS.get(self.name, (0, ""))
        if jumps <= allowed:
            self.errors = [error for error in self.errors if not error.startswith("jump")]
        return self.errors

    def error(self, instruction, why):
        self.errors.append(f"`{instruction.text}` at {instruction.address:x}: {why}")

    def is_within(self, jump):
        first, last = self.code[0].address, self.code[-1].address
        target = re.match(r"([0-9a-f]+)( |$)", jump.operands[0])
        return bool(target) and first <= int(target[1], 16) <= last

    def secret_flags(self, jump):
        """Why the flags of a jump may depend on a secret, or nothing."""
        seen, todo = set(), list(self.before[jump])
        while todo:
            i = todo.pop()
            if i in seen:
                continue
            seen.add(i)
            instruction = self.code[i]
            if not instruction.writes_flags():
                if instruction.name.startswith("call") or not self.before[i]:
                    return "flags of a call"
                todo += self.before[i]
                continue
            if not re.fullmatch(f"{COMPARISONS}|{ARITHMETIC}", instruction.name):
                return f"flags of `{instruction.text}`"
            if self.is_zeroing(instruction):
                continue
            for place in map(self.places, instruction.operands):
                if isinstance(place, str):
                    return f"`{instruction.text}` {place}"
                for one in place:
                    if why := self.secret(one, i):
                        return f"`{instruction.text}`: {why}"
        return None

    def is_constant(self, operand, instruction):
        """Whether an operand is in a table of constants: one of its registers is an address of read-only data."""
        return is_memory(operand) and any(self.is_table(place, instruction) for place in registers_within(operand))

    def is_table(self, place, instruction):
        """Whether all instructions that may have set a register load an address of read-only data."""
        at = next(i for i, one in enumerate(self.code) if one is instruction)
        seen, todo, setters = set(), list(self.before[at]), 0
        while todo:
            i = todo.pop()
            if i in seen:
                continue
            seen.add(i)
            one = self.code[i]
            if not self.writes(place, one):
                if i == 0 or self.sources(place, one) != {place}:
                    return False
                todo += self.before[i]
                continue
            address = re.search(r"# ([0-9a-f]+)", one.line)
            if one.name != "lea" or "%rip" not in one.text or int(address[1], 16) not in self.constants:
                return False
            setters += 1
        return setters > 0

    @staticmethod
    def writes(place, instruction):
        operands = instruction.operands
        return bool(operands) and register(operands[-1]) == place and not re.fullmatch(COMPARISONS, instruction.name)

    @staticmethod
    def is_zeroing(instruction):
        operands = instruction.operands
        return re.match("xor|sub", instruction.name) and len(operands) == 2 and operands[0] == operands[1]

    @staticmethod
    def places(operand):
        """The registers and the stack's slot that an operand reads; a text, if it reads other memory or registers."""
        if operand.startswith("$"):
            return set()
        if SLOT.fullmatch(operand):
            return {operand}
        if is_memory(operand):
            return "loads from memory"
        found = register(operand)
        return {found} if found else "reads a vector register or a mask"

    def secret(self, place, at):
        """Why a register or a slot of the stack may hold a secret before an instruction, or nothing."""
        seen, todo = set(), [(place, i) for i in self.before[at]] + ([(place, None)] if at == 0 else [])
        while todo:
            place, i = todo.pop()
            if (place, i) in seen:
                continue
            seen.add((place, i))
            if place == "rsp":
                continue
            if i is None:
                # The function's begin. Arguments are pointers or counts.
                if place not in ARGUMENTS | {"rbp", "rbx", "r12", "r13", "r14", "r15"}:
                    return f"{place} is not set"
                continue
            sources = self.sources(place, self.code[i])
            if isinstance(sources, str):
                return sources
            # Padding has no instruction before it, and is not reached.
            before = [*self.before[i], *([None] if i == 0 else [])]
            todo += [(source, j) for source in sources for j in before]
        return None

    def sources(self, place, instruction):
        """What determines a place after an instruction: places before it; or why that is unknown."""
        name, operands = instruction.name, instruction.operands
        unknown = f"{place} by `{instruction.text}` at {instruction.address:x}"
        if name.startswith("call"):
            return unknown if place in CLOBBERED else {place}
        if re.match(r"(mul|imul|div|idiv|cqto|cltd|cpuid|rdtsc)", name) and len(operands) <= 1 and place in ("rax", "rdx"):
            return unknown
        if name.startswith("xchg") and operands[0] != operands[1] and any(register(operand) == place for operand in operands):
            return unknown
        if name.startswith("mulx") and any(register(operand) == place for operand in operands[1:]):
            return unknown
        if not operands or re.fullmatch(COMPARISONS, name) or name.startswith(("push", "nop", "xchg", "j", "ret")):
            return {place}
        last = operands[-1]
        if not (register(last) == place if place in ALIASES.values() else last == place):
            return {place}
        if self.is_zeroing(instruction):
            return set()
        if name.startswith("lea"):
            return registers_within(operands[0])
        if re.fullmatch(MOVES, name):
            if self.is_constant(operands[0], instruction):
                return registers_within(operands[0])
            found = self.places(operands[0])
            return unknown if isinstance(found, str) else found
        if re.fullmatch(ARITHMETIC, name):
            sources = set() if name.startswith("imul") and len(operands) == 3 else {place}
            for operand in operands[:-1]:
                found = self.places(operand)
                if isinstance(found, str):
                    return unknown
                sources |= found
            return sources
        if name.startswith("pop"):
            return {place}
        return unknown


def without_hash(name):
    return re.sub(r"::h[0-9a-f]{16}$|@.*$|\+0x[0-9a-f]+$", "", name)


def functions(program):
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", program], check=True, capture_output=True, text=True).stdout
    sections = subprocess.run(["objdump", "-h", program], check=True, capture_output=True, text=True).stdout
    size, start = re.search(r"\.rodata +([0-9a-f]+) +([0-9a-f]+)", sections).groups()
    constants = range(int(start, 16), int(start, 16) + int(size, 16))
    wanted = {*SECRET, CONTROL}
    for block in text.split("\n\n"):
        header, *lines = block.strip().splitlines() or [""]
        name = re.fullmatch(r"[0-9a-f]+ <(.*)>:", header)
        if name and without_hash(name[1]) in wanted:
            yield Function(without_hash(name[1]), [line.strip() for line in lines if ":\t" in line], constants)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: machine_code.py PROGRAM")
    found = list(functions(sys.argv[1]))
    failed = False
    for name in [*SECRET, CONTROL]:
        if not any(function.name == name for function in found):
            print(f"{name}: not in the program")
            failed = True
    for function in found:
        errors = function.check({*SECRET})
        jumps = sum(instruction.is_conditional() for instruction in function.code)
        print(f"{function.name}: {len(function.code)} instructions, {jumps} conditional jumps, {len(errors)} errors")
        if function.name == CONTROL:
            failed |= not any(error.startswith("jump") for error in errors)
            continue
        for error in errors:
            print(f"    {error}")
        failed |= bool(errors)
    sys.exit(failed)


main()
