import { expect, it } from 'vitest'
import { createFindings, type Finding } from '../../../endure/oracle/findings.ts'

it('counts all, keeps many, and reports the first of each kind at once', () => {
  const reported: Finding[] = []
  const findings = createFindings(
    () => 1,
    () => ['a fault'],
    (finding) => void reported.push(finding),
  )
  for (let time = 0; time < 600; time += 1) findings.add('growth', `growth ${time}`)
  findings.add('wrong credential', 'c1 at /obo', 'id')
  expect([findings.count, findings.all.length]).toEqual([601, 500])
  expect(reported.map(({ kind }) => kind)).toEqual([...Array<string>(10).fill('growth'), 'wrong credential'])
  expect(reported.at(-1)).toEqual({
    kind: 'wrong credential',
    atSeconds: 1,
    what: 'c1 at /obo',
    faults: ['a fault'],
    requestId: 'id',
  })
})
