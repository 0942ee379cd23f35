import { expect, test } from 'vitest'
import { type Loaded, parseDocuments } from '../../../../src/load/index.ts'
import { openSpellings } from '../../../support/load/publish/verdicts/recorded.ts'
import { type Spelling, SPELLINGS } from '../../../support/resources/verdicts/spellings.ts'

const read = openSpellings()
const load = (text: string): Loaded => parseDocuments([{ path: 'config.yaml', text }])
const specOf = (loaded: Loaded): string | undefined => loaded.auths[0]?.configHash

/** Whether files say the same as kubectl and an API server, or say that they don't: a problem, or a warning. */
function isTold(spelling: Spelling): boolean {
  const ours = load(spelling.text)
  const theirs = read(spelling)
  if (ours.problems.length > 0 || ours.warnings.length > 0) return true
  return theirs !== null && specOf(ours) === specOf(load(JSON.stringify(theirs)))
}

test.each(SPELLINGS.map((spelling) => [spelling.what, spelling] as const))(
  '%s has the same value in kubectl, or is reported',
  (_what, spelling) => {
    expect(isTold(spelling)).toBe(true)
  },
)

test('what kubectl reads without trouble is refused in few cases, all of them named', () => {
  const refused = SPELLINGS.filter((spelling) => read(spelling) !== null && load(spelling.text).problems.length > 0)
  expect(refused.map(({ what }) => what)).toEqual([
    // Numbers and flags of YAML 1.1, which a warning beside the problem explains; a text that is a number beyond all bounds.
    'seconds written 3_600',
    'a key called 1e400',
    'a flag written on',
    'a flag written yes',
    'a flag written y',
    // Tags, and a key that is there twice: whatever was meant, it is not clear.
    'a text !!binary aGk=',
    'a text !own x',
    'the same key twice',
  ])
})

test('there are many of them, and both readings of most', () => {
  expect(SPELLINGS.length).toBeGreaterThan(140)
  expect(SPELLINGS.filter((spelling) => read(spelling) === null).length).toBeGreaterThan(40)
})
