import { Component, h, render } from './lib/preact.js'
import { useEffect, useMemo, useRef, useState } from './lib/hooks.js'
import htm from './lib/htm.js'

/** Markup as tagged templates: what is put in is text, whatever it holds. */
export const html = htm.bind(h)
export { Component, render, useEffect, useMemo, useRef, useState }

/** Control characters but tab and line feeds, format characters, and those that turn the direction of what follows. */
const UNSEEN = /(?![\t\n\r])[\p{Cc}\p{Cf}]/gu

/** A text in which nothing is hidden and nothing turns around: such characters are written out. */
export const visible = (text) =>
  String(text).replace(UNSEEN, (one) => `\\u${one.codePointAt(0).toString(16).padStart(4, '0')}`)

/** Text from outside, kept apart from what is around it. */
export const Text = ({ of, class: name = '' }) => html`<bdi class=${name}>${visible(of ?? '')}</bdi>`

/** `12:34:56.789` in the viewer's time zone. */
export function timeOf(ms) {
  const at = new Date(ms)
  const two = (number) => String(number).padStart(2, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`
}

/** `12:34` in the same. */
export const minuteOf = (ms) => timeOf(ms).slice(0, 5)

/** `12 ms`, `3.4 s`. */
export const durationOf = (ms) =>
  ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`

/** `in 4 min`, `2 s ago`. */
export function distanceOf(ms, now = Date.now()) {
  const seconds = Math.round(Math.abs(ms - now) / 1000)
  const text =
    seconds < 120
      ? `${seconds} s`
      : seconds < 7200
        ? `${Math.round(seconds / 60)} min`
        : `${Math.round(seconds / 3600)} h`
  return ms > now ? `in ${text}` : `${text} ago`
}

/**
 * Re-renders only when one of its properties is another one; what it renders is said by who extends it.
 */
export class Pure extends Component {
  /** @returns {import('preact').ComponentChildren} */
  render() {
    return null
  }

  shouldComponentUpdate(next) {
    for (const name in next) if (name !== 'children' && next[name] !== this.props[name]) return true
    return false
  }
}
