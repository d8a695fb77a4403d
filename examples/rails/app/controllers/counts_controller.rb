# frozen_string_literal: true

# Counts, a number at a time, to a browser that listens by EventSource.
class CountsController < ApplicationController
  include ActionController::Live

  # ActionController::Live: what is written is sent at once. Rails runs the action in a thread of its own.
  def show
    response.headers["content-type"] = "text/event-stream"
    # Rack::ETag would gather the whole body otherwise.
    response.headers["last-modified"] = Time.now.httpdate
    events = ActionController::Live::SSE.new(response.stream, event: "count")
    numbers.each do |number|
      events.write({ number: number })
      sleep pause
    end
  rescue ActionController::Live::ClientDisconnected
    logger.info("nobody listens any more")
  ensure
    response.stream.close
  end

  private

  def numbers = 1..params.fetch(:to, 5).to_i

  def pause = params.fetch(:pause, 1).to_f.clamp(0, 60)
end
