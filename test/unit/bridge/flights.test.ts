import { describe, expect, it } from 'vitest'
import { Flight, Flights } from '../../../src/bridge/flights.ts'

const flight = (id: number | string, method = 'ping') =>
  new Flight({ kind: 'request', bytes: Buffer.alloc(0), id, method, params: {} }, undefined)

describe('requests that have no answer yet', () => {
  it('take turns: so many run, and the next one when one is over', async () => {
    const flights = new Flights()
    const running = await Promise.all(Array.from({ length: 256 }, (_, id) => flights.turn(flight(id))))
    const begun: string[] = []
    const [first, second] = ['first', 'second'].map((id) =>
      flights.turn(flight(id)).then((done) => (begun.push(id), done)),
    )
    await flights.turn(flight('listen', 'subscriptions/listen'))
    expect(begun).toEqual([])
    running[0]?.()
    const done = await first
    expect(begun).toEqual(['first'])
    done?.()
    await second
    expect(begun).toEqual(['first', 'second'])
  })

  it('are so many at most, each with an id of its own', () => {
    const flights = new Flights()
    for (let id = 0; id < 20_256; id++) expect(flights.add(flight(id))).toBe('added')
    expect(flights.add(flight(0))).toBe('in_use')
    expect(flights.add(flight('0'))).toBe('too_many')
    const [one] = flights.all()
    if (one !== undefined) flights.remove(one)
    expect(flights.add(flight('0'))).toBe('added')
  })
})
