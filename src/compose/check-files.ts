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

/** Thousands of routes may name the same file or secret: it is read once. */
function createOnce() {
  const known = new Map<string, FileVerdict | Promise<FileVerdict>>()
  return (key: readonly unknown[], judge: () => FileVerdict | Promise<FileVerdict>) => {
    const text = JSON.stringify(key)
    const verdict = known.get(text) ?? judge()
    known.set(text, verdict)
    return verdict
  }
}

/** Looks whether the files and secrets that a configuration names are there and hold what they should, each at its place. */
export async function checkFiles(
  { files, secrets }: NamedThings,
  secretsDirectory: string,
  clock: Clock,
): Promise<FileFindings> {
  const findings: FileFindings = { problems: [], warnings: [] }
  const nowMs = clock.now()
  const once = createOnce()
  for (const file of files)
    add(findings, file.at, await once([file.holds, file.path, file.certificate], () => judgeFile(file, nowMs)))
  for (const secret of secrets)
    add(
      findings,
      secret.at,
      await once([secret.holds, secret.label], () => judgeSecret(secret, secretsDirectory, nowMs)),
    )
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
  const nowMs = clock.now()
  const once = createOnce()
  const judge = async (secret: NamedSecret) =>
    once([secret.holds, secret.label], () => judgeSecret(secret, directory, nowMs))
  const verdicts = await Promise.all(secrets.map(judge))
  return secrets.flatMap(({ at }, index) => {
    const verdict = verdicts[index]
    return verdict?.level === 'unusable' ? [{ ...at, message: verdict.message }] : []
  })
}
