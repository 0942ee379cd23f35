import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { checksumsOf, fromMaven } from '../../../interop/maven.ts'

/** Gives `here` without a network and `there` with one, as far as those folders are; keeps how it was called. */
const MAVEN = `#!/bin/sh
[ "$1" = --version ] && exit
echo "$1" >>"$WORLD/calls"
from=there; [ "$1" = -o ] && from=here
for last; do :; done
[ -d "$WORLD/$from" ] && cp "$WORLD/$from"/* "\${last#-DoutputDirectory=}"
`
const java = (release: string) => `#!/bin/sh\necho 'openjdk version "${release}"' >&2\n`
const sum = (text: string) => createHash('sha256').update(text).digest('hex')

let world: string
beforeEach(() => {
  world = mkdtempSync(path.join(os.tmpdir(), 'extauth-maven-test-'))
  program('mvn', MAVEN)
  program('java', java('17.0.15'))
  vi.stubEnv('PATH', `${world}:${process.env['PATH']}`)
  vi.stubEnv('TMPDIR', world)
  vi.stubEnv('WORLD', world)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(world, { recursive: true, force: true })
})

const program = (name: string, text: string) => writeFileSync(path.join(world, name), text, { mode: 0o755 })
const calls = (): readonly string[] => readFileSync(path.join(world, 'calls'), 'utf8').trim().split('\n')
function has(where: 'here' | 'there', files: Readonly<Record<string, string>>): void {
  mkdirSync(path.join(world, where))
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(world, where, name), text)
}
const wanted = () =>
  fromMaven({ goal: 'copy', options: ['-B'], checksums: checksumsOf(`${sum('a')}  a.jar\n${sum('b')} *b.jar\n`) })

it('takes what is here without a network, once', () => {
  has('here', { 'a.jar': 'a', 'b.jar': 'b' })
  const files = wanted()
  expect(files.missing()).toBeUndefined()
  expect(readFileSync(path.join(files.folder(), 'b.jar'), 'utf8')).toBe('b')
  expect(calls()).toEqual(['-o'])
})

it('downloads what is not here', () => {
  has('there', { 'a.jar': 'a', 'b.jar': 'b' })
  const files = wanted()
  expect(files.missing()).toBeUndefined()
  expect(files.folder()).toContain(world)
  expect(calls()).toEqual(['-o', '-q'])
})

it.each([
  ['another file', { 'a.jar': 'a', 'b.jar': 'c' }, 'b.jar'],
  ['a file less', { 'a.jar': 'a' }, 'b.jar'],
  ['a file more', { 'a.jar': 'a', 'b.jar': 'b', 'c.jar': 'c' }, 'c.jar'],
])('fails with %s than those that are known', (_what, files, name) => {
  has('here', files)
  expect(wanted().missing()).toBeUndefined()
  expect(() => wanted().folder()).toThrow(`what Maven gives is other than what is known here: ${name}`)
})

it.each([
  ['java', '#!/bin/sh\nexit 127\n', 'there is no java of release 17 or later; in Debian: default-jdk-headless'],
  ['java', java('1.8.0_412'), 'there is no java of release 17 or later; in Debian: default-jdk-headless'],
  ['mvn', '#!/bin/sh\nexit 127\n', 'there is no mvn; in Debian: maven'],
  ['mvn', MAVEN, 'the Maven registry does not answer, and its local repository lacks some'],
])('says what to install: %s', (name, text, why) => {
  program(name, text)
  expect(wanted().missing()).toBe(why)
})
