import type { Clock, EpochMs } from '../core/index.ts'
import type { NamedFile, NamedSecret, Problem } from '../load/index.ts'
import { type FileVerdict, checkNamedFile, judgeSecret, verdictSentence } from './file-verdict.ts'

export interface FileFindings {
  /** They prevent a start. */
  readonly problems: Problem[]
  /** They do not prevent a start. */
  readonly warnings: Problem[]
}

/** The files and secrets that a configuration references. */
export interface NamedThings {
  readonly files: readonly NamedFile[]
  readonly secrets: readonly NamedSecret[]
}

/** The reference and verdict of each item. Items with an equal `keyOf` are read once: thousands of routes may reference one file. */
async function verdictsOn<T extends { readonly at: Problem }>(
  all: readonly T[],
  keyOf: (one: T) => readonly unknown[],
  check: (one: T) => FileVerdict | Promise<FileVerdict>,
): Promise<(readonly [at: Problem, verdict: FileVerdict])[]> {
  const known = new Map<string, FileVerdict>()
  const found: (readonly [Problem, FileVerdict])[] = []
  for (const one of all) {
    const key = JSON.stringify(keyOf(one))
    const verdict = known.get(key) ?? (await check(one))
    known.set(key, verdict)
    found.push([one.at, verdict])
  }
  return found
}

const verdictsOnSecrets = (secrets: readonly NamedSecret[], directory: string, nowMs: EpochMs) =>
  verdictsOn(
    secrets,
    ({ holds, label, algorithm }) => [holds, label, algorithm],
    (secret) => judgeSecret(secret, directory, nowMs),
  )

/** Checks that the referenced files and secrets exist and have the expected content. Each finding has the location of the reference. */
export async function checkFiles(
  { files, secrets }: NamedThings,
  secretsDirectory: string,
  clock: Clock,
): Promise<FileFindings> {
  const findings: FileFindings = { problems: [], warnings: [] }
  const nowMs = clock.now()
  const ofFiles = await verdictsOn(
    files,
    (file) => [file.holds, file.path, file.certificate],
    (file) => checkNamedFile(file, nowMs),
  )
  const ofSecrets = await verdictsOnSecrets(secrets, secretsDirectory, nowMs)
  for (const [at, verdict] of [...ofFiles, ...ofSecrets]) add(findings, at, verdict)
  return findings
}

function add({ problems, warnings }: FileFindings, at: Problem, verdict: FileVerdict): void {
  const found = { ...at, message: verdictSentence(verdict) }
  if (verdict.level === 'refused') problems.push(found)
  else if (verdict.level === 'unusable' || verdict.level === 'doubtful') warnings.push(found)
}

/** A problem for each secret that is missing or unusable, at the location of its reference. Consequences are left out. */
export async function unusableSecrets(
  secrets: readonly NamedSecret[],
  directory: string,
  clock: Clock,
): Promise<Problem[]> {
  const verdicts = await verdictsOnSecrets(secrets, directory, clock.now())
  return verdicts
    .filter(([, { level }]) => level === 'unusable')
    .map(([at, { message }]) => Object.assign({}, at, { message }))
}
