# frozen_string_literal: true

require "faraday"

proves_together("faraday") { |url| Faraday.get(url).body }
puts "noted: a response that is cut off looks whole"
proves_abandoned { |url| Faraday.get(url).body }
