import { expect, it } from 'vitest'
import { turned } from '../../endure/world/configuration.ts'

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
