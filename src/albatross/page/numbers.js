// Numbers as text, in one format everywhere.

export const BOUNDLESS = 1e300; // such a score means "try it once"

export function number(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Math.abs(value) >= BOUNDLESS) return "∞";
  return written(value, Math.abs(value) >= 1e6 ? 0 : digits, digits);
}

/** Grouped digits, a real minus sign, and none before zero. */
function written(value, most, least = 0) {
  const size = Math.abs(value).toLocaleString("en", { minimumFractionDigits: Math.min(least, most), maximumFractionDigits: most });
  return value < 0 && /[1-9]/.test(size) ? `−${size}` : size;
}

export const whole = (value) => (value === null || value === undefined ? "–" : written(value, 0));
/** As many digits as it has, up to six after the point. */
export const plain = (value) => written(value, 6);
/** Marks on an axis: as many digits as they differ in. */
export const marks = (values) => values.map((value) => (value === null ? "" : plain(value)));
export const share = (value) => (value === null || value === undefined ? "–" : `${number(100 * value, 1)} %`);
export const signed = (value, digits = 2) => {
  const size = number(Math.abs(value), digits);
  return `${/[1-9∞]/.test(size) ? (value > 0 ? "+" : "−") : "±"}${size}`;
};
export const clock = (at) => (at === null || at === undefined ? "–" : new Date(1000 * at).toLocaleString("sv-SE")); // 2026-11-17 00:04:03, here

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let size = value;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (size < 1000) return `${number(size, unit === "B" ? 0 : 1)} ${unit}`;
    size /= 1000;
  }
  return `${number(size, 1)} TB`;
}
