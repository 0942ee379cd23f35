import { expect, test } from 'vitest'
import { checkLibrary } from '../../src/authserver/library/provider.ts'
import { checkHttpClient } from '../../src/net/index.ts'

test('an HTTP client in which nothing was put right is refused at the start, with what to do', async () => {
  await expect(checkHttpClient(() => undefined)).rejects.toMatchObject({
    code: 'config_error',
    detail: expect.stringMatching(/undici.*npm ci/) as unknown,
  })
})

test('the HTTP client that came along is the one that is put right', async () => {
  await expect(checkHttpClient()).resolves.toBeUndefined()
})

test('an authorization server library without the parts that are replaced is refused, with what to do', () => {
  const Client = Object.assign(() => undefined, { prototype: {} })
  expect(() => checkLibrary({ Client } as unknown as Parameters<typeof checkLibrary>[0])).toThrow(
    expect.objectContaining({
      code: 'config_error',
      detail: expect.stringMatching(/oidc-provider.*npm ci/) as unknown,
    }),
  )
})
