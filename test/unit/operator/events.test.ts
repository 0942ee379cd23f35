import { expect, test } from 'vitest'
import { eventObject } from '../../../src/operator/events.ts'

const NOW = new Date('2026-11-26T10:00:00Z')
const REPORTER = { controller: 'extauth.dev/operator', instance: 'i' }

const about = (name: string, note = '') =>
  eventObject(
    {
      regarding: { apiVersion: 'extauth.dev/v1beta1', kind: 'MCPRemoteProxy', metadata: { name, namespace: 'n' } },
      type: 'Warning',
      reason: 'SpecInvalid',
      note,
    },
    REPORTER,
    NOW,
  )

/** The API server's rule for names (DNS-1123 subdomain). */
const NAME = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

test.each([
  ['only ASCII', 'x'.repeat(5000)],
  ['characters of two bytes', 'é'.repeat(600)],
  ['characters of four bytes', `a${'😀'.repeat(400)}`],
])('a note of %s has at most the 1,024 bytes that the API server takes, and tears no character', (_what, note) => {
  const cut = String(about('crm', note)['note'])
  expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(1024)
  expect(Buffer.byteLength(cut)).toBeGreaterThan(1015)
  expect(cut.endsWith('…')).toBe(true)
  expect(note.startsWith(cut.slice(0, -1))).toBe(true)
})

test('a note that fits is said whole', () => {
  expect(about('crm', 'x'.repeat(1024))['note']).toBe('x'.repeat(1024))
})

test.each(['-', '.', 'x'])('an object of a long name with "%s" in it has events', (character) => {
  const name = `${'a'.repeat(229)}${character}${'b'.repeat(20)}`
  expect(about(name).metadata.name).toMatch(NAME)
})
