# frozen_string_literal: true

# A stream by ActionController::Live.
class LiveController < ApplicationController
  include ActionController::Live

  def events
    response.headers["content-type"] = "text/event-stream"
    sse = ActionController::Live::SSE.new(response.stream, event: "tick")
    3.times do |number|
      sse.write({ number: })
      sleep 0.3
    end
  ensure
    sse&.close
  end
end
