# frozen_string_literal: true

require "uri"

# Four routes: a greeting, a nap, a count that is streamed, and an echo of what was sent.
class Plain
  TEXT = { "content-type" => "text/plain; charset=utf-8" }.freeze
  private_constant :TEXT

  def call(env)
    case [env["REQUEST_METHOD"], env["PATH_INFO"]]
    in ["GET", "/"] then text("Hello from Heddle\n")
    in ["GET", "/sleep"] then nap(query(env))
    in ["GET", "/count"] then count(query(env))
    in ["POST", "/echo"] then echo(env)
    else text("Not here. Try /, /sleep?seconds=1, /count?to=5&pause=1, or POST to /echo.\n", status: 404)
    end
  end

  private

  # Waits like any Ruby program. Only this request waits.
  def nap(query)
    seconds = query.fetch("seconds", "1").to_f.clamp(0, 60)
    sleep seconds
    text("slept #{seconds} s\n")
  end

  # A streaming body: called with the stream once the head of the answer is sent.
  def count(query)
    to = query.fetch("to", "5").to_i
    pause = query.fetch("pause", "1").to_f.clamp(0, 60)
    body = lambda do |stream|
      1.upto(to) do |number|
        stream.write("#{number}\n")
        sleep pause
      end
    ensure
      stream.close
    end
    [200, TEXT.dup, body]
  end

  # Sends back what it reads, piece by piece, whatever the size.
  def echo(env)
    input = env["rack.input"]
    body = Enumerator.new do |pieces|
      while (piece = input&.read(16_384))
        pieces << piece
      end
    end
    [200, { "content-type" => env.fetch("CONTENT_TYPE", "application/octet-stream") }, body]
  end

  def query(env)
    URI.decode_www_form(env["QUERY_STRING"]).to_h
  end

  def text(body, status: 200)
    [status, TEXT.merge("content-length" => body.bytesize.to_s), [body]]
  end
end
