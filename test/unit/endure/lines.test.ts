import { describe, expect, it } from 'vitest'
import { createLines } from '../../../endure/oracle/lines.ts'
import { createMarks } from '../../../endure/oracle/marks.ts'

function read() {
  const found: string[] = []
  const marks = createMarks()
  const lines = createLines({ add: (kind, what) => void found.push(`${kind}: ${what}`) }, marks, () => 1_000)
  const request = (requestId: string, status = 200) =>
    lines.read('replica-1', JSON.stringify({ level: 30, msg: 'request', requestId, status, detail: 'why' }))
  return { found, marks, lines, request }
}

describe('the lines of the log', () => {
  it('are there, one for each answer', () => {
    const { found, lines, request } = read()
    lines.expect('a', 200, 'c1')
    request('a')
    lines.check(1_001, () => false)
    expect(found).toEqual([])
    expect(lines.detailOf('a')).toBe('replica-1: why')
  })

  it('are missed, and found twice, and with another status', () => {
    const { found, lines, request } = read()
    for (const id of ['missing', 'twice', 'other']) lines.expect(id, 200, 'c1')
    request('twice')
    request('twice')
    request('other', 503)
    lines.check(1_000, () => false)
    expect(found).toEqual(['doubled log line: request twice at replica-1'])
    lines.check(1_001, () => false)
    expect(found.slice(1)).toEqual([
      'missing log line: c1: request missing',
      'missing log line: c1: request other has status 503, not 200',
    ])
  })

  it('may be missing where a log was lost', () => {
    const { found, lines } = read()
    lines.expect('a', 200, 'c1')
    lines.check(1_001, (at) => at === 1_000)
    expect(found).toEqual([])
  })

  it('say which replica served who may be served by one alone', () => {
    const { found, lines, request } = read()
    lines.expect('a', 200, 'c1', 'replica-1')
    lines.expect('b', 200, 'c2', 'replica-2')
    for (const id of ['a', 'b']) request(id)
    lines.check(1_001, () => false)
    expect(found).toEqual(['served who must be refused: c2: by replica-1, whose clock is right'])
  })

  it('have no secret in them', () => {
    const { found, marks, lines } = read()
    marks.add('eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjMS4wIn0.c2lnbmF0dXJlLW9mLWl0', 'token of c1.0')
    lines.read('replica-1', '{"level":40,"msg":"unusual","detail":"sub c2lnbmF0dXJlLW9mLWl0!"}')
    lines.read('replica-1', 'Error: at eyJzdWIiOiJjMS4wIn0')
    expect(found).toEqual([
      'leaked secret: token of c1.0, in a line of replica-1',
      'leaked secret: token of c1.0, in a line of replica-1',
    ])
    expect([...lines.warnings]).toEqual([['warn unusual', 1]])
  })
})

describe('marks', () => {
  it('are found as whole words, of short ones and of the header of a JWT none', () => {
    const marks = createMarks()
    marks.add('extauth', 'user')
    marks.add('-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n', 'key')
    marks.add('eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjMS4wIn0.c2lnbmF0dXJlLW9mLWl0', 'token')
    expect(marks.find('extauth eyJhbGciOiJSUzI1NiJ9')).toEqual([])
    expect(marks.find('x="MIGHAgEAMBMGByqGSM49"')).toEqual(['key'])
    expect(marks.find('MIGHAgEAMBMGByqGSM49MIGHAgEAMBMGByqGSM49')).toEqual([])
  })
})
