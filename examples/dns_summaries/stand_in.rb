# frozen_string_literal: true

require "json"

# Stands in for a service that has summaries of articles, and takes its time.
class StandIn
  # Seconds for an answer.
  DELAY = Float(ENV.fetch("DELAY", 1))

  # The first requests wait for each other: none is answered before so many are open.
  TOGETHER = Integer(ENV.fetch("TOGETHER", 1))

  LONG = 3_000

  def initialize
    @gate = Thread::Queue.new
    @requests = @open = @most = 0
  end

  # `GET /summary/TITLE` is a summary; `GET /counts` tells how many were asked for, and how many at once.
  def call(env)
    case env["PATH_INFO"]
    when %r{\A/summary/nothing} then [404, { "content-type" => "text/plain" }, ["no such article\n"]]
    when %r{\A/summary/([\w-]+)\z} then summary(Regexp.last_match(1))
    when "/counts" then json({ requests: @requests, most: @most })
    else [404, { "content-type" => "text/plain" }, ["no such path\n"]]
    end
  end

  private

  def summary(title)
    @requests += 1
    @open += 1
    @most = [@most, @open].max
    @gate.close if @open >= TOGETHER
    @gate.pop
    sleep DELAY
    text = "All that is known about #{title}."
    json({ title: title, summary: title == "long" ? text.ljust(LONG, " And more.") : text })
  ensure
    @open -= 1
  end

  def json(object) = [200, { "content-type" => "application/json" }, [JSON.generate(object)]]
end
