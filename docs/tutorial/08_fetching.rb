# frozen_string_literal: true

# Step 8: fetching pages with Ruby's own Net::HTTP, which does not know Heddle. Six requests take as long as one, and of
# two mirrors the first response is used.
#
#     ruby docs/tutorial/08_fetching.rb

require "heddle"
require "net/http"
require_relative "site"

def timed
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  result = yield
  [result, Process.clock_gettime(Process::CLOCK_MONOTONIC) - start]
end

Heddle.run do
  site = Site.new(delay: 0.5)
  mirrors = [Site.new(delay: 10), site]
  [*mirrors].each { |one| Heddle.async(background: true) { one.serve } }

  sizes, took = timed do
    Heddle.map(Site::PAGES.keys, limit: 10) { |path| Net::HTTP.get(site.url(path)).size }
  end
  puts format("%<count>d pages in %<took>.1f s", count: sizes.size, took: took)

  _, took = timed do
    Heddle.timeout(5) { Heddle.race(mirrors) { |mirror| Net::HTTP.get(mirror.url) } }
  end
  puts format("the quicker mirror took %<took>.1f s", took: took)
end
