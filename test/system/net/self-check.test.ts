import { expect, test } from 'vitest'
import { checkHttpClient } from '../../../src/net/self-check.ts'

test('an HTTP client in which nothing was put right is refused at the start, with what to do', async () => {
  await expect(checkHttpClient(() => undefined)).rejects.toMatchObject({
    code: 'config_error',
    detail: expect.stringMatching(/undici.*npm ci/) as unknown,
  })
})

test('the HTTP client that came along is the one that is put right', async () => {
  await expect(checkHttpClient()).resolves.toBeUndefined()
})
