# frozen_string_literal: true

require "typhoeus"

# Within Heddle.offload: else a request blocks the loop, as ethon's callbacks keep it on its thread.
get = lambda do |url|
  answer = Heddle.offload { Typhoeus.get(url) }
  raise answer.return_message unless answer.success?

  answer.body
end
proves_together("typhoeus") { |url| get.call(url) }
proves_cut { |url| get.call(url) }
