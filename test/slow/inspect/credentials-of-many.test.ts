import { randomBytes } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { type Credential, Secret } from '../../../src/core/index.ts'
import { SecretTexts } from '../../../src/inspect/secret-texts.ts'

const MIB = 1024 * 1024

/** Bytes of buffers that are in use. */
function buffersInUse(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().arrayBuffers
}

const headerOf = (token: string): Credential => ({
  kind: 'header',
  name: 'authorization',
  value: new Secret(`Bearer ${token}`),
})

it('masks the credentials of thousands of callers in the memory of a few, each of them again and again', () => {
  const tokens = Array.from({ length: 1_000 }, () => randomBytes(600).toString('base64url'))
  const credentials = tokens.map(headerOf)
  const before = buffersInUse()
  for (const round of [0, 1])
    for (const [index, credential] of credentials.entries()) {
      const texts = new SecretTexts()
      texts.addCredential(credential)
      expect(texts.maskIn(`round ${round}: ${tokens[index]}`)).toBe(`round ${round}: [masked]`)
    }
  expect((buffersInUse() - before) / MIB).toBeLessThan(6)
  // All of them are there until here.
  expect(credentials).toHaveLength(1_000)
})
