# frozen_string_literal: true

# Step 9: a crawler. Several workers share a channel of pages to visit; what they find there they put into it again. It
# is in crawler.rb, so that the next step can test it.
#
#     ruby docs/tutorial/09_crawler.rb

require_relative "crawler"
require_relative "site"

Heddle.run do
  site = Site.new
  Heddle.async(background: true) { site.serve }

  Crawler.new(at_once: 3).visit(site.url).sort.each do |path, links|
    puts "#{path}: #{links ? "#{links} links" : "not found"}"
  end
  puts "at most #{site.most} pages at once"
end
