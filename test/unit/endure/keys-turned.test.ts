import { expect, it } from 'vitest'
import { edited, turned } from '../../../endure/world/configuration.ts'

it('turns keys for as long as a run lasts: known before they sign, and never more than the product takes', () => {
  let keys = turned(['first'], 'key 0')
  for (let time = 1; time < 100; time += 1) {
    const before = keys
    keys = turned(before, `key ${time}`)
    expect(keys[0]).toBe(before.at(-1))
    expect(keys[1]).toBe(before[0])
    expect(before).not.toContain(keys.at(-1))
    expect(new Set(keys).size).toBe(Math.min(time + 2, 8))
  }
})

it('edits a file as often as it likes, and changes nothing else in it', () => {
  const before = '# About a.\nkind: A\nkeys: [old]\n---\nkind: B\n---\n# About c.\nkind: C\n'
  let text = before
  for (let time = 0; time < 100; time += 1) text = edited(text, [[['keys'], [`key-${time}`]]])
  expect(text).toBe('# About a.\nkind: A\nkeys:\n  - key-99\n---\nkind: B\n---\n# About c.\nkind: C\n')
})
