import type { Clock } from '../core/index.ts'
import type { NamedFile, NamedSecret, Problem } from '../load/index.ts'
import { type FileVerdict, judgeFile, judgeSecret, verdictSentence } from './file-verdict.ts'

export interface FileFindings {
  /** What keeps a process from starting. */
  readonly problems: Problem[]
  /** What it starts with, but should be known. */
  readonly warnings: Problem[]
}

/** Everything that a configuration names beside its documents. */
export interface NamedThings {
  readonly files: readonly NamedFile[]
  readonly secrets: readonly NamedSecret[]
}

/** Where each is named, with what was found. Thousands of routes may name the same, by its `keyOf`: it is read once. */
async function verdictsOn<T extends { readonly at: Problem }>(
  all: readonly T[],
  keyOf: (one: T) => readonly unknown[],
  judge: (one: T) => FileVerdict | Promise<FileVerdict>,
): Promise<(readonly [at: Problem, verdict: FileVerdict])[]> {
  const known = new Map<string, FileVerdict>()
  const found: (readonly [Problem, FileVerdict])[] = []
  for (const one of all) {
    const key = JSON.stringify(keyOf(one))
    const verdict = known.get(key) ?? (await judge(one))
    known.set(key, verdict)
    found.push([one.at, verdict])
  }
  return found
}

const verdictsOnSecrets = (secrets: readonly NamedSecret[], directory: string, nowMs: number) =>
  verdictsOn(
    secrets,
    ({ holds, label, algorithm }) => [holds, label, algorithm],
    (secret) => judgeSecret(secret, directory, nowMs),
  )

/** Looks whether the files and secrets that a configuration names are there and hold what they should, each at its place. */
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
    (file) => judgeFile(file, nowMs),
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

/** Those of the secrets that are not there or cannot be used, each at its place; nothing of what follows from it. */
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
