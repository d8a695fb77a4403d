# frozen_string_literal: true

require "net/http"

# Asks another server for rates, which takes its time.
class RateService
  def initialize(url)
    @url = URI(url)
  end

  def rate
    Net::HTTP.get(@url).to_i # culprit: http
  end
end
