import { expect, test } from 'vitest'
import { RefCountedPool } from '../../../src/core/index.ts'

function pool() {
  const events: string[] = []
  const things = new RefCountedPool<string>((thing) => void events.push(`close ${thing}`))
  const open = (name: string) => () => {
    events.push(`open ${name}`)
    return name
  }
  return { things, events, open }
}

test('a resource is opened once for all holders', () => {
  const { things, events, open } = pool()
  const [one, other] = [things.hold(), things.hold()]
  expect([one.get('a', open('a')), one.get('a', open('a')), other.get('a', open('a'))]).toEqual(['a', 'a', 'a'])
  expect(events).toEqual(['open a'])
})

test('it is closed with its last holder, and opened again for the next', async () => {
  const { things, events, open } = pool()
  const [one, other] = [things.hold(), things.hold()]
  one.get('a', open('a'))
  other.get('a', open('a'))
  other.get('b', open('b'))
  await one.release()
  expect(events).toEqual(['open a', 'open b'])
  await other.release()
  await other.release()
  expect(events.slice(2)).toEqual(['close a', 'close b'])
  things.hold().get('a', open('a'))
  expect(events.at(-1)).toBe('open a')
})

test('one that cannot be opened has no holder', async () => {
  const { things, events, open } = pool()
  const one = things.hold()
  const fail = (): never => {
    throw new Error('no')
  }
  expect(() => one.get('a', fail)).toThrow('no')
  expect(one.get('a', open('a'))).toBe('a')
  await one.release()
  expect(events).toEqual(['open a', 'close a'])
})

test('what a thing uses stays open as long as the thing, whichever holder opened it', async () => {
  const { things, events, open } = pool()
  const [one, other] = [things.hold(), things.hold()]
  for (const holder of [one, other]) holder.get('hub', (uses) => `hub of ${uses.get('process', open('process'))}`)
  await one.release()
  expect(events).toEqual(['open process'])
  await other.release()
  expect(events).toEqual(['open process', 'close hub of process', 'close process'])
})

test('what a thing took before it could not be opened is released', async () => {
  const { things, events, open } = pool()
  const fail = () =>
    things.hold().get('hub', (uses) => {
      uses.get('process', open('process'))
      throw new Error('no')
    })
  expect(fail).toThrow('no')
  await expect.poll(() => events).toEqual(['open process', 'close process'])
})
