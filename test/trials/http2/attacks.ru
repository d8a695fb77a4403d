# frozen_string_literal: true

LARGE = ("x" * 1_000_000).freeze

run(lambda do |env|
  body =
    case env["PATH_INFO"]
    when "/large" then LARGE
    when "/fibers"
      GC.start
      ObjectSpace.each_object(Fiber).count(&:alive?).to_s
    else "hello"
    end
  [200, { "content-type" => "text/plain" }, [body]]
end)
