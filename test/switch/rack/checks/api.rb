# frozen_string_literal: true

require "json"
require "stringio"

# Requests of the API, and the gems around them.
module Switch
  class RackApplication
    JSON_BODY = { "content-type" => "application/json" }.freeze
    private_constant :JSON_BODY

    check "answers and an unknown path", at: :production do
      zipped = get("/", "accept-encoding" => "gzip")
      plain = get("/", "accept-encoding" => "identity")
      again = get("/", "accept-encoding" => "identity", "if-none-match" => plain["etag"])
      missing = get("/nowhere")
      head = request(Net::HTTP::Head.new("/"))
      [zipped["content-encoding"], plain.body, plain["content-type"], plain["content-length"], again.code,
       missing.code, missing.body, head.code, head.body.to_s]
    end

    check "JSON in a request", at: :production do
      post = Net::HTTP::Post.new("/items", JSON_BODY)
      post.body = JSON.generate(name: "é #{application.server}")
      made = request(post)
      broken = Net::HTTP::Post.new("/items", JSON_BODY)
      broken.body = "{"
      [made.code, JSON.parse(made.body)["name"].delete_suffix(application.server), request(broken).code]
    end

    check "an exception in development", at: :development do
      answer = get("/broken", "accept" => "text/html")
      [answer.code, answer.body.include?("on purpose")]
    end

    check "an exception in production, and Sentry's event", at: :production do
      File.write(application.sentry_file, "")
      answer = get("/broken", "accept" => "text/html")
      event = wait_for("Sentry's event") do
        written = File.read(application.sentry_file).lines.select { |line| line.end_with?("\n") } # whole lines
        written.map { |line| JSON.parse(line) }.find { |line| line["exception"] }
      end
      [answer.code, answer.body.include?("on purpose"), event.dig("exception", "values", 0, "value"),
       event.dig("exception", "values", 0, "mechanism", "handled"), event.dig("request", "method")]
    end

    check "rack-timeout", at: :production do
      slow = Thread.new { get("/slow") }
      others = at_once(4) { get("/named/other").code }
      [slow.value.code, others.uniq, get("/").code]
    end

    check "names of New Relic's transactions and Sentry's tags at once", at: :production do
      answers = at_once(6) { |number| JSON.parse(get("/named/n#{number}").body) }
      answers.map.with_index { |one, number| one == { "transaction" => "n#{number}", "tag" => "n#{number}" } }.tally
    end

    check "transactions of Sequel at once", at: :production do
      name = "undone-#{application.server}"
      undone = at_once(6) { post("/items/undone", "name" => name).code }
      made = at_once(6) { post("/items", "name" => "made-#{application.server}").code }
      counts = [name, "made-#{application.server}"].map { |one| JSON.parse(get("/items?name=#{one}").body)["count"] }
      [undone.tally, made.tally, counts]
    end

    check "a body in chunks", at: :production do
      post = Net::HTTP::Post.new("/digest", "transfer-encoding" => "chunked", "content-type" => "text/plain")
      post.body_stream = StringIO.new("0123456789" * 100_000)
      JSON.parse(request(post).body)
    end
  end
end
