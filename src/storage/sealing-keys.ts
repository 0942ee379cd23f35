import { randomBytes } from 'node:crypto'
import { Secret, type SecretHandle } from '../core/index.ts'
import type { SealingKeys } from './port.ts'

/**
 * The sealing keys behind a list of secrets: the first must be readable, of the others those count that are. Without any,
 * one is made now, which nothing outside of this process can open.
 */
export function createSealingKeys(handles: readonly SecretHandle[]): SealingKeys {
  const [first, ...others] = handles
  if (first === undefined) {
    const made = [new Secret(randomBytes(32).toString('base64url'))]
    return { current: () => made, refresh: () => Promise.resolve(), isEphemeral: true }
  }
  return {
    current: () => [first.current(), ...others.flatMap((handle) => readable(handle) ?? [])],
    async refresh() {
      await Promise.all(handles.map((handle) => handle.refresh()))
    },
    isEphemeral: false,
  }
}

function readable(handle: SecretHandle): Secret | undefined {
  try {
    return handle.current()
  } catch {
    return undefined
  }
}
