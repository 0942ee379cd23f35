import { expect, test } from 'vitest'
import { isWellKnown } from '../../../src/proxy/documents.ts'

test.each([
  '/.well-known/oauth-protected-resource',
  '/.WELL-KNOWN',
  '//.well-known/x',
  '/.well-known;x/y',
  '/%2Ewell-known/x',
  '/%252Ewell-known/x',
  '/%25252Ewell-known/x',
  '/.w%2565ll-known',
])('%s is a discovery path, however it is spelled: never forwarded', (path) => {
  expect(isWellKnown(path)).toBe(true)
})

test.each(['/', '/well-known/x', '/mcp/.well-known/x', '/.well-knownx', '/%2Emcp'])('%s is none', (path) => {
  expect(isWellKnown(path)).toBe(false)
})
