import { type Observed, USABLE_LABEL } from './observed.ts'
import type { Finding } from './conditions.ts'

/** What is known of the Secrets that something names. */
export type SecretStates =
  /** The operator may not look. */
  | 'unknown'
  | {
      readonly missing: readonly string[]
      /** With `--secrets-by-label`: those that nothing may be made with, missing ones included; else none. */
      readonly barred: readonly string[]
    }

export type SecretLookup = (namespace: string, names: readonly string[]) => SecretStates

/** `isByLabel`: only Secrets with the label may be named (`--secrets-by-label`). */
export function createSecretLookup({ secret }: Pick<Observed, 'secret'>, isByLabel: boolean): SecretLookup {
  if (secret === undefined) return () => 'unknown'
  return (namespace, names) => {
    const sorted = [...new Set(names)].sort()
    const missing = sorted.filter((name) => secret(namespace, name) === 'missing')
    // One that is not there yet could come without the label.
    return { missing, barred: isByLabel ? sorted.filter((name) => secret(namespace, name) !== 'usable') : [] }
  }
}

/** Names of Secrets that keep anything from being made with them. */
export const barredSecrets = (states: SecretStates): readonly string[] => (states === 'unknown' ? [] : states.barred)

/** What admission says of a Secret that is there without its label. */
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
