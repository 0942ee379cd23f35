import type { Page } from 'playwright-core'

/**
 * Runs in the page, whose globals are not those of the tests: contrast of every text against what is behind it (WCAG 2.2
 * §1.4.3), whether the page is wider than its window, how high its buttons are.
 */
const LOOK = `(() => {
  const channels = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number)
  const luminance = (color) => {
    const [red, green, blue] = color.slice(0, 3).map((value) => {
      const share = value / 255
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const over = (front, back) => {
    const alpha = front[3] ?? 1
    return [0, 1, 2].map((index) => front[index] * alpha + back[index] * (1 - alpha))
  }
  const behind = (element) => {
    const own = channels(getComputedStyle(element).backgroundColor)
    if ((own[3] ?? 1) === 1) return own
    return over(own, element.parentElement === null ? [255, 255, 255] : behind(element.parentElement))
  }
  const opacity = (element) =>
    Number(getComputedStyle(element).opacity) * (element.parentElement === null ? 1 : opacity(element.parentElement))
  const hasText = (node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim() !== ''
  const texts = [...document.querySelectorAll('body *')].filter((element) => [...element.childNodes].some(hasText))
  const contrasts = texts.map((element) => {
    const back = behind(element)
    const [red, green, blue, alpha = 1] = channels(getComputedStyle(element).color)
    const front = over([red, green, blue, alpha * opacity(element)], back)
    const [light, dark] = [luminance(front), luminance(back)].sort((one, other) => other - one)
    return (light + 0.05) / (dark + 0.05)
  })
  const { scrollWidth, clientWidth } = document.documentElement
  return {
    least: Math.min(...contrasts),
    background: luminance(behind(document.body)),
    isTooWide: scrollWidth > clientWidth,
    buttons: [...document.querySelectorAll('button')].map((button) => button.getBoundingClientRect().height),
  }
})()`

export interface Look {
  /** Of the text that can be read least, as WCAG counts it. */
  readonly least: number
  readonly background: number
  readonly isTooWide: boolean
  /** Heights in CSS pixels. */
  readonly buttons: readonly number[]
}

/** Readability of a page: contrast of every text against what is behind it, and what does not fit. */
export const look = (page: Page): Promise<Look> => page.evaluate<Look>(LOOK)
