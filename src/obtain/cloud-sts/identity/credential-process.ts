import { type ChildProcess, spawn } from 'node:child_process'
import { readJsonObject } from '../../../http/index.ts'
import { CredentialSourceError, type FoundKeys } from './keys.ts'

/** Output limit in bytes: credentials take about two kilobytes. */
const MAX_OUTPUT_BYTES = 64 * 1024

/**
 * Runs a profile's `credential_process` in a shell, as the AWS SDKs do. `signal` kills the command and its children.
 * Its stderr is dropped, because it may quote credentials. Throws `CredentialSourceError`.
 */
export async function processKeys(command: string, signal: AbortSignal): Promise<FoundKeys> {
  const fields = readJsonObject(await outputOf(command, signal))
  if (fields === undefined) throw new CredentialSourceError('its credential_process did not print a JSON object')
  const text = (name: string): string | undefined => {
    const value = fields[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  if (fields['Version'] !== 1) throw new CredentialSourceError('its credential_process did not print "Version": 1')
  const accessKeyId = text('AccessKeyId')
  const secretAccessKey = text('SecretAccessKey')
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new CredentialSourceError('its credential_process printed no "AccessKeyId" or no "SecretAccessKey"')
  const sessionToken = text('SessionToken')
  const expiration = text('Expiration')
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
    ...(expiration === undefined ? {} : { expiration: new Date(expiration) }),
  }
}

async function outputOf(command: string, signal: AbortSignal): Promise<Buffer> {
  // A process group, so that children end with the shell at the deadline.
  const child = spawn(command, { shell: true, detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const kill = (): void => killGroup(child)
  process.once('exit', kill)
  signal.addEventListener('abort', kill)
  try {
    return await new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let length = 0
      child.stdout.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length <= MAX_OUTPUT_BYTES) chunks.push(chunk)
        else kill()
      })
      child.on('error', (error) =>
        reject(new CredentialSourceError('its credential_process cannot be started', { cause: error })),
      )
      child.on('close', (code, killed) => {
        if (length > MAX_OUTPUT_BYTES)
          reject(new CredentialSourceError(`its credential_process printed more than ${MAX_OUTPUT_BYTES} bytes`))
        else if (signal.aborted) reject(new CredentialSourceError('its credential_process timed out and was killed'))
        else if (code !== 0)
          reject(new CredentialSourceError(`its credential_process ended with ${killed ?? `code ${code}`}`))
        else resolve(Buffer.concat(chunks))
      })
      if (signal.aborted) kill()
    })
  } finally {
    process.off('exit', kill)
    signal.removeEventListener('abort', kill)
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has already ended.
  }
}
