# frozen_string_literal: true

require "digest"
require "fileutils"
require "socket"
require "stringio"
require "tempfile"

# Bodies of requests and responses.
module Switch
  class RailsApplication
    check "send_file with Range", at: :production do
      path = File.join(application.folder, "public/large.bin")
      File.binwrite(path, Random.new(1).bytes(300_000)) unless File.exist?(path)
      whole = get("/probes/file")
      expect whole.body == File.binread(path), "another file"
      part = get("/large.bin", "range" => "bytes=100-199")
      expect part.body == File.binread(path, 100, 100), "another part"
      [whole.code, whole["content-length"], whole["content-disposition"], part.code, part["content-range"],
       get("/large.bin", "range" => "bytes=900000-").code, get("/probes/data")["content-disposition"]]
    end

    check "an upload by form", at: :production do
      post = Net::HTTP::Post.new("/probes/echo")
      file = StringIO.new(Random.new(2).bytes(2_000_000))
      post.set_form([["note", "é".b], ["file", file, { filename: "a b.bin", content_type: "image/png" }]],
                    "multipart/form-data", boundary: "boundary-of-the-form")
      JSON.parse(request(post).body)
    end

    check "an upload to Active Storage", at: :production do
      page = get("/posts/new")
      post = Net::HTTP::Post.new("/posts", "cookie" => page["set-cookie"][/\A[^;]+/])
      picture = Random.new(3).bytes(500_000)
      token = page.body[/name="authenticity_token" value="([^"]+)"/, 1]
      post.set_form([["authenticity_token", token], ["post[title]", "with picture"],
                     ["post[picture]", picture, { filename: "picture.bin", content_type: "application/octet-stream" }]],
                    "multipart/form-data")
      shown = get(URI(request(post)["location"]).path)
      link = get(URI.join(served.uri, shown.body[%r{href="(/rails/active_storage/[^"]+)"}, 1]).request_uri)
      file = get(URI(link["location"]).request_uri)
      expect file.body == picture, "another picture"
      part = get(URI(link["location"]).request_uri, "range" => "bytes=10-19")
      [link.code, file.code, file["content-disposition"], part.code, part["content-range"]]
    end

    # Puma speaks HTTP/1.1 only: there the body comes in chunks.
    check "an upload without a length", at: :production do
      version = application.server == "puma" ? "--http1.1" : "--http2-prior-knowledge"
      Tempfile.create do |file|
        file.write("a=1&b=#{"x" * 100_000}")
        file.close
        output = run("curl", "--silent", "--show-error", version, "--header", "content-length:", "--header",
                     "transfer-encoding: chunked", "--header", "content-type: application/x-www-form-urlencoded",
                     "--request", "POST", "--upload-file", file.path, URI.join(served.uri, "/probes/echo").to_s)
        JSON.parse(output).then { |found| [found["size"], found["body"], found["parameters"].transform_values(&:size)] }
      end
    end

    check "ActionController::Live", at: :production do
      # The action sends each event but the first when the client says that it has the one before.
      path = File.join(application.folder, "tmp/seen-#{application.server}")
      body = +""
      Net::HTTP.start(served.uri.host, served.uri.port, read_timeout: Probe::TIMEOUT, max_retries: 0) do |http|
        http.request_get("/live/events?seen=#{URI.encode_www_form_component(path)}") do |response|
          response.read_body do |part|
            body << part
            File.write(path, body.scan("event: tick").size.to_s)
          end
        end
      end
      body
    ensure
      FileUtils.rm_f(path)
    end

    check "streamed templates and bodies", at: :production do
      answers = %w[streamed lines].map { |action| get("/probes/#{action}") }
      answers.map { |answer| [answer.code, answer["transfer-encoding"], answer.body] }
    end
  end
end
