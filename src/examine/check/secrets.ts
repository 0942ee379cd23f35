import path from 'node:path'
import type { SecretForm } from '../../core/index.ts'
import type { SecretRef } from '../../fields/index.ts'
import type { CheckContext } from './context.ts'
import { checkPermissions, fileProblem } from './files.ts'
import { about, type CheckResult } from './result.ts'

/** A secret: there, readable, and not to be changed by everybody. `field` says where the configuration names it. */
export function checkSecret(ref: SecretRef, field: string, context: CheckContext, form?: SecretForm): CheckResult[] {
  const label = `${ref.name}/${ref.key}`
  const line = about('secret', label)
  const file = path.join(context.config.secretsDirectory, ref.name, ref.key)
  try {
    context.secrets.handle(ref, form).current()
    return [line.ok(`readable (${field})`), ...checkPermissions(file)]
  } catch {
    const [detail, remedy] = fileProblem(context.secretProblem(label) ?? 'unreadable')
    return [line.failed(`${detail}: ${file} (${field})`, remedy)]
  }
}
