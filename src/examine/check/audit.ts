import { accessSync, constants } from 'node:fs'
import path from 'node:path'
import { isTrailFile, LEAST_KEY_BYTES } from '../../audit/index.ts'
import { causeOf } from '../../core/index.ts'
import { type AuditSettings, STDOUT } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { checkPermissions } from './files.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { checkSecret, isUsable } from './secrets.ts'

/** Tests of the audit trail: its file, without creating or changing it, and the key of its fingerprints. */
export function auditTasks({ file, keySecretRef }: AuditSettings, context: CheckContext): readonly Task[] {
  const tasks: Task[] = [() => Promise.resolve([trailLine(file), ...(file === STDOUT ? [] : checkPermissions(file))])]
  if (keySecretRef !== undefined) tasks.push(() => keyLines(keySecretRef, context))
  return tasks
}

function trailLine(file: string): CheckResult {
  const line = about('audit', file)
  if (file === STDOUT) return line.ok('events go to standard output')
  const directory = path.dirname(file)
  const remedy = 'set audit.file to a file in an existing directory that the proxy may write'
  let isThere = false
  try {
    isThere = isTrailFile(file)
    accessSync(directory, constants.W_OK | constants.X_OK)
    return line.ok(isThere ? 'can be appended to' : `will be created in ${directory}`)
  } catch (error) {
    const code = causeOf(error).code ?? 'error'
    if (isThere)
      return line.warning(
        `can be appended to, but not created again after a rotation (${code} at ${directory})`,
        `allow the proxy to write ${directory}, or rotate with "create" or "copytruncate"`,
      )
    return line.failed(`cannot be opened for writing (${code})`, remedy)
  }
}

async function keyLines(
  ref: NonNullable<AuditSettings['keySecretRef']>,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const secret = { value: ref, holds: 'bytes' as const }
  const lines = await checkSecret(secret, 'audit.keySecretRef', context)
  if (!(await isUsable(secret, context))) return lines
  const { length } = context.secrets.handle(ref, 'bytes').current().bytes()
  if (length >= LEAST_KEY_BYTES) return lines
  const line = about('audit', `${ref.name}/${ref.key}`)
  return [
    ...lines,
    line.failed(
      `the key of fingerprints has ${length} bytes, expected at least ${LEAST_KEY_BYTES}`,
      `write ${LEAST_KEY_BYTES} random bytes: openssl rand -out FILE ${LEAST_KEY_BYTES}`,
    ),
  ]
}
