# frozen_string_literal: true

# A stream by ActionController::Live. Each event waits until the client has seen those before it.
class LiveController < ApplicationController
  include ActionController::Live

  def events
    response.headers["content-type"] = "text/event-stream"
    sse = ActionController::Live::SSE.new(response.stream, event: "tick")
    3.times do |number|
      sleep 0.05 until number.zero? || seen >= number
      sse.write({ number: })
    end
  ensure
    sse&.close
  end

  private

  def seen = File.exist?(params[:seen]) ? File.read(params[:seen]).to_i : 0
end
