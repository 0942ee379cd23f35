import { describe, expect, test } from 'vitest'
import { type CrdKind, CRD_KINDS } from '../../../../src/load/publish/index.ts'
import { parseObjects } from '../../../../src/load/index.ts'
import { AUTH_SERVER_FIELDS, type FieldTable, WORKLOAD_FIELDS } from '../../../../src/resources/index.ts'
import { type JudgedObject, judgedObjects } from '../../../support/load/publish/verdicts/objects.ts'
import { openRecord } from '../../../support/load/publish/verdicts/recorded.ts'

const TABLES: readonly FieldTable[] = [
  AUTH_SERVER_FIELDS,
  WORKLOAD_FIELDS.MCPRemoteProxy,
  WORKLOAD_FIELDS.MCPServerEntry,
]
const REFUSED_SENTENCES = [
  ...new Set(
    TABLES.flatMap((table) =>
      Object.values(table).flatMap((row) => (row.is === 'rejected' && row.isOverridable !== true ? [row.details] : [])),
    ),
  ),
]

/** Problems that neither a structural schema nor CEL in it can find: the webhook does. */
const BEYOND_CEL = [
  /: line \d+, column \d+ of the expression: /,
  /: expected a policy(?: as JSON)?(?:, with placeholders in strings only)?: an object with "Statement"$/,
  /: a session policy has at most 2048 characters, this has \d+$/,
  /: a session policy has at most 2048 characters, this would have at least \d+$/,
  /: this text has characters or a length that STS does not take$/,
  /: no placeholder may be in /,
  /" is not understood; expected \{claims\.PATH\}, or a policy variable such as \$\{aws:userid\}$/,
  /" is not replaced here; expected a template \(/,
  /: this value is empty; expected a value, or "allowEmpty: true"$/,
  /: this tag is there already; case does not count$/,
  // Rules of a NetworkPolicy are anything to the definition, and CEL in it knows no networks.
  /: missing, expected peers: an empty list allows all, metadata services included$/,
  // A host that is a number and no address: names of hosts may be anything to Go.
  /"https:\/\/(256\.1\.1\.1|1\.2\.3\.4\.5)": expected /,
  // Both groups share the definitions, but their defaults differ.
  /: needs "allowConfidentialClientRegistration"$/,
  /: a client on this machine is a public one; expected URLs of other hosts$/,
  /: secrets of clients would be given out over plain http; expected /,
  // CEL in a definition can take no URL apart that is text.
  /: plain http is for loopback and in-cluster names only; expected none, and endpoints with https$/,
  // The definition would be too large with the shape of another grant; the webhook validates it.
  /^MCPExternalAuthConfig: an actor's grant with /,
  // How long an assertion of another server may last, in an entry of a list: no rule of CEL is cheap enough there.
  /: expected more than 0s and 24h at most$/,
  // Fields of others' manifests that are refused: the definition has them so that the webhook can say why.
  ...REFUSED_SENTENCES.map(
    (sentence) => new RegExp(`: ${sentence.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)}$`),
  ),
]
/** Kinds that other controllers add fields to: here those are listed, a server prunes them or warns. */
const OPEN_KINDS: ReadonlySet<CrdKind> = new Set(['MCPRemoteProxy', 'MCPServerEntry'])

const objects = judgedObjects()
const verdictOf = openRecord()
const validated = new Map<JudgedObject, readonly string[]>()
/** Thousands of objects, each used twice and validated once. */
function problemsOf(one: JudgedObject): readonly string[] {
  const problems =
    validated.get(one) ?? parseObjects([one.object]).problems.map(({ message }) => `${one.what}: ${message}`)
  validated.set(one, problems)
  return problems
}
const isBeyondCel = (problem: string): boolean => BEYOND_CEL.some((known) => known.test(problem))

describe('files get the same verdicts as objects at an API server', () => {
  test.each(CRD_KINDS)('%s', (kind) => {
    const different = objects
      .filter((one) => one.kind === kind)
      .flatMap((one) => {
        const problems = problemsOf(one)
        const isAccepted = verdictOf(kind, one.object)
        if ((problems.length === 0) === isAccepted) return []
        if (isAccepted) return problems.every(isBeyondCel) ? [] : [`only we say ${problems.join('; ')}`]
        const isOpen = OPEN_KINDS.has(kind) && JSON.stringify(one.object).includes('"notKnown"')
        return isOpen ? [] : [`${one.what}: only a server refuses it`]
      })
    expect(different).toEqual([])
  })

  test('the table is large, and both verdicts are in it for every kind', () => {
    expect(objects.length).toBeGreaterThan(5_000)
    for (const kind of CRD_KINDS) {
      const verdicts = objects.filter((one) => one.kind === kind).map((one) => verdictOf(kind, one.object))
      expect(new Set(verdicts)).toEqual(new Set([true, false]))
    }
  })

  test('each of the problems that only the webhook can find is found', () => {
    const found = objects.flatMap(problemsOf).filter(isBeyondCel)
    for (const pattern of BEYOND_CEL) expect(found.some((problem) => pattern.test(problem))).toBe(true)
  })

  test('an object without a verdict does not pass', () => {
    expect(() => verdictOf('MCPServer', { apiVersion: 'extauth.dev/v1alpha1' })).toThrow('--record')
  })
})
