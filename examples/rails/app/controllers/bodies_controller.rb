# frozen_string_literal: true

# Counts by a body that the server iterates over while it sends: Rack's own way to stream.
class BodiesController < ApplicationController
  def show
    to = params.fetch(:to, 5).to_i
    pause = params.fetch(:pause, 1).to_f.clamp(0, 60)
    response.headers["content-type"] = "text/plain; charset=utf-8"
    # Rack::ETag would gather the whole body otherwise.
    response.headers["last-modified"] = Time.now.httpdate
    self.response_body = Enumerator.new do |lines|
      1.upto(to) do |number|
        lines << "#{number}\n"
        sleep pause
      end
    end
  end
end
