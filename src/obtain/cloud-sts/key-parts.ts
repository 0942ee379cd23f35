import type { Claims, ClaimValue } from '../../core/index.ts'

/** Claims beside those of the caller's identity that STS and the trust policies of roles judge. */
const JUDGED = new Set(['aud', 'azp', 'client_id', 'amr', 'act'])
const AWS_CLAIMS = 'https://aws.amazon.com/'

/**
 * What tells credentials of one caller apart (decisions §4): the role, the session name, and every claim that
 * STS judges or copies into the session, as canonical JSON. A token with another of these never gets what an earlier got.
 */
export function keyParts(roleArn: string, sessionName: string, claims: Claims): readonly string[] {
  const names = Object.keys(claims).filter((name) => JUDGED.has(name) || name.startsWith(AWS_CLAIMS))
  const judged = Object.fromEntries(names.map((name) => [name, claims[name] ?? null]))
  return [roleArn, sessionName, canonicalJson(judged)]
}

/** JSON with the names of every object sorted, so that equal values are equal texts. */
export function canonicalJson(value: ClaimValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members = Object.keys(value)
    .toSorted()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name] ?? null)}`)
  return `{${members.join(',')}}`
}

function isArray(value: ClaimValue): value is readonly ClaimValue[] {
  return Array.isArray(value)
}
