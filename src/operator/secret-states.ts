import { type Observed, USABLE_LABEL } from './observed.ts'
import type { Finding } from './conditions.ts'

/** The state of referenced Secrets. */
export type SecretStates =
  /** The operator has no permission to read Secrets. */
  | 'unknown'
  | {
      readonly missing: readonly string[]
      /** With `--secrets-by-label`: Secrets without the label, including missing ones; else empty. */
      readonly barred: readonly string[]
    }

export type SecretLookup = (namespace: string, names: readonly string[]) => SecretStates

/** `isByLabel`: only Secrets with the label may be referenced (`--secrets-by-label`). */
export function createSecretLookup({ secret }: Pick<Observed, 'secret'>, isByLabel: boolean): SecretLookup {
  if (secret === undefined) return () => 'unknown'
  return (namespace, names) => {
    const sorted = [...new Set(names)].sort()
    const missing = sorted.filter((name) => secret(namespace, name) === 'missing')
    // A missing one could be created without the label.
    return { missing, barred: isByLabel ? sorted.filter((name) => secret(namespace, name) !== 'usable') : [] }
  }
}

/** Names of Secrets whose use is forbidden. */
export const forbiddenSecrets = (states: SecretStates): readonly string[] => (states === 'unknown' ? [] : states.barred)

/** The admission message for a Secret without the label. */
export const notUsable = (name: string): string =>
  `the Secret "${name}" has no label ${USABLE_LABEL}: "true", and the operator runs with --secrets-by-label`

/** The condition `SecretsResolved` of a config or a proxy. */
export function secretsFinding(states: SecretStates): Finding {
  const type = 'SecretsResolved'
  if (states === 'unknown')
    return {
      type,
      status: 'Unknown',
      reason: 'SecretsNotWatched',
      message: 'the operator does not read Secrets; a missing one shows in the readiness of the pods',
    }
  const { missing, barred } = states
  const unlabelled = barred.filter((name) => !missing.includes(name))
  if (unlabelled.length > 0)
    return {
      type,
      status: 'False',
      reason: 'SecretsNotUsable',
      message: `without the label ${USABLE_LABEL}: "true": ${unlabelled.join(', ')}`,
    }
  if (missing.length > 0)
    return { type, status: 'False', reason: 'SecretsMissing', message: `missing: ${missing.join(', ')}` }
  return { type, status: 'True', reason: 'SecretsFound', message: 'every Secret that is named exists' }
}
