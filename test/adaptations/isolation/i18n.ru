# frozen_string_literal: true

# The last I18n that keeps the locale in a thread variable.

gem "i18n", "1.14.8"
require "i18n"

I18n.enforce_available_locales = false

run(lambda do |env|
  id = env["QUERY_STRING"]
  I18n.locale = :"locale#{id}"
  sleep 0.05
  before = I18n.locale
  streamed = Fiber.new { I18n.locale }.resume # as `render stream: true` does
  elsewhere = Thread.new { I18n.locale }.value # a thread of its own starts with the default, as it does under Puma
  [200, {}, ["#{before} #{streamed} #{elsewhere}"]]
end)
