/** Semantic Versioning 2.0.0, with an optional leading `v`. Build metadata does not order. */
const SEMVER = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/

interface Semantic {
  readonly numbers: readonly bigint[]
  readonly prerelease: readonly string[]
}

function parse(version: string): Semantic | undefined {
  const match = SEMVER.exec(version)
  if (match === null) return undefined
  const numbers = match.slice(1, 4).map((digits) => BigInt(digits))
  return { numbers, prerelease: match[4]?.split('.') ?? [] }
}

const byCodeUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const byNumber = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)

function comparePrerelease(a: readonly string[], b: readonly string[]): number {
  // A version without pre-release is later.
  if (a.length === 0 || b.length === 0) return b.length - a.length
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const left = a[index]
    const right = b[index]
    if (left === undefined) return -1
    if (right === undefined) return 1
    const leftIsNumber = /^\d+$/.test(left)
    const rightIsNumber = /^\d+$/.test(right)
    if (leftIsNumber !== rightIsNumber) return leftIsNumber ? -1 : 1
    const order = leftIsNumber ? byNumber(BigInt(left), BigInt(right)) : byCodeUnits(left, right)
    if (order !== 0) return order
  }
  return 0
}

/**
 * Compares versions: negative if `a` is older than `b` (SemVer 2.0.0 §11). Other versions are older than semantic ones
 * and compare by code units.
 */
export function compareVersions(a: string, b: string): number {
  const left = parse(a)
  const right = parse(b)
  if (left === undefined || right === undefined) {
    if (left === right) return byCodeUnits(a, b)
    return left === undefined ? -1 : 1
  }
  for (const [index, number] of left.numbers.entries()) {
    const order = byNumber(number, right.numbers[index] ?? 0n)
    if (order !== 0) return order
  }
  return comparePrerelease(left.prerelease, right.prerelease)
}
