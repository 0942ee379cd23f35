import path from 'node:path'
import { type FileVerdict, judgeSecret, verdictSentence } from '../../compose/index.ts'
import type { Content, SecretRef } from '../../fields/index.ts'
import { type ResolvedAuth, secretsNamedBy } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { checkPermissions, lineOf } from './files.ts'
import { about, type CheckResult } from './result.ts'

/** A secret and its expected content. */
interface Named {
  readonly value: SecretRef
  readonly holds: Content
}

/**
 * Tests a secret with the messages of `validate`: it exists, is valid and not world-writable. `field` is its location
 * in the configuration.
 */
export async function checkSecret(secret: Named, field: string, context: CheckContext): Promise<CheckResult[]> {
  const { name, key } = secret.value
  const finding = await judge(secret, context)
  const message = `${verdictSentence(finding)} (${field})`
  const line = lineOf(about('secret', `${name}/${key}`), { ...finding, message })
  return [line, ...checkPermissions(path.join(context.config.secretsDirectory, name, key))]
}

/** Whether all secrets of a config are usable. Unusable ones have their own line. */
export async function hasItsSecrets(auth: ResolvedAuth, context: CheckContext): Promise<boolean> {
  const each = await Promise.all(secretsNamedBy(auth).map((secret) => isUsable(secret, context)))
  return each.every(Boolean)
}

/** Whether one secret is usable. */
export async function isUsable(secret: Named, context: CheckContext): Promise<boolean> {
  const { level } = await judge(secret, context)
  return level !== 'refused' && level !== 'unusable'
}

function judge({ value: { name, key }, holds }: Named, context: CheckContext): Promise<FileVerdict> {
  const label = `${name}/${key}`
  return context.once(JSON.stringify(['secret', label, holds]), () =>
    judgeSecret({ label, holds }, context.config.secretsDirectory, context.clock.now()),
  )
}
