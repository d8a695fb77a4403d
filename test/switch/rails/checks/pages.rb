# frozen_string_literal: true

# Pages, errors and responses.
module Switch
  class RailsApplication
    HTML = { "accept" => "text/html" }.freeze

    check "a page in development", at: :development, smoke: true do
      page = get("/posts", HTML)
      expect page.body.include?("New post"), page.body[0, 500]
      [page.code, page["content-type"], page["link"].to_s.scan(/rel=(\w+)/).flatten.tally]
    end

    check "an error page in development", at: :development, smoke: true do
      page = get("/probes/broken", HTML)
      expect page.body.include?("on purpose, not 42"), page.body[0, 500]
      expect page.body.include?("raise(&quot;on purpose") || page.body.include?("on purpose, not \#{"), "no source"
      [page.code, page.body[%r{<title>(.*?)</title>}m, 1].to_s.strip, page.body.include?("Application Trace")]
    end

    check "an error for JavaScript in development", at: :development do
      answer = get("/probes/broken", "x-requested-with" => "XMLHttpRequest")
      [answer.code, answer["content-type"], answer.body.lines.first(2), answer.body.include?("Application Trace")]
    end

    check "an unknown path in development", at: :development, smoke: true do
      page = get("/nowhere", HTML)
      expect page.body.include?("No route matches"), page.body[0, 500]
      [page.code, page.body.scan(%r{/posts/:id/edit\(\.:format\)}).any?]
    end

    check "web-console", at: :development do
      page = get("/probes/broken", HTML)
      session = page.body[/data-session-id=["']([^"']+)/, 1]
      mount = page.body[/data-mount-point=["']([^"']+)/, 1]
      expect session && mount, "no console on the page"
      put = Net::HTTP::Put.new("#{mount}/repl_sessions/#{session}",
                               "accept" => "application/vnd.web-console.v2", "x-requested-with" => "XMLHttpRequest")
      put.set_form_data("input" => "6 * 7")
      JSON.parse(request(put).body)["output"]
    end

    check "changed code in development", at: :development do
      before = get("/probes/reloaded").body
      path = File.join(application.folder, "app/models/greeting.rb")
      text = File.read(path)
      File.write(path, text.sub("first", "second"))
      after = wait_for("the changed code") { (body = get("/probes/reloaded").body) != before && body }
      [before, after]
    ensure
      File.write(path, text) if text
    end

    check "a page in production", at: :production, smoke: true do
      page = get("/posts", HTML)
      style = page.body[%r{href="(/assets/[^"]+\.css)"}, 1]
      asset = get(style)
      [page, asset].flat_map { |one| [one.code, one["content-type"], one["cache-control"]] }
    end

    check "an error page in production", at: :production, smoke: true do
      page = get("/probes/broken", HTML)
      expect !page.body.include?("on purpose"), "the error is shown"
      [page.code, page.body[%r{<title>(.*?)</title>}m, 1]]
    end

    check "an unknown path and record in production", at: :production do
      %w[/nowhere /probes/missing].map { |path| get(path, HTML) }
                                  .map { |page| [page.code, page.body[%r{<title>(.*?)</title>}m, 1]] }
    end

    check "headers of responses", at: :production do
      answer = get("/probes/headers_of_all_kinds")
      names = answer.to_hash.keys - %w[date connection keep-alive server]
      cookies = answer.get_fields("set-cookie").map { |cookie| cookie.gsub(/=[^;]*/, "").delete(" ") }
      [answer.code, names.sort, cookies.sort, answer["cache-control"], answer["content-type"]]
    end

    check "conditional requests and HEAD", at: :production do
      first = get("/probes/kept")
      again = get("/probes/kept", "if-none-match" => first["etag"])
      head = request(Net::HTTP::Head.new("/probes/kept"))
      [first.code, again.code, again.body.to_s, head.code, head.body.to_s]
    end

    check "content-length of HEAD", at: :production,
                                    known: "Puma says 0, though GET's response is longer (RFC 9110, section 8.6)" do
      request(Net::HTTP::Head.new("/probes/kept"))["content-length"]
    end

    check "a session by cookie", at: :production do
      first = get("/probes/visits")
      cookie = first["set-cookie"][/\A[^;]+/]
      [first.body, get("/probes/visits", "cookie" => cookie).body]
    end

    check "methods, paths and headers of requests", at: :production do
      path = "/probes/environment?a[]=1&a[]=2&b=%C3%A9"
      answers = [get(path, "cookie" => "flavour=plain", "x-forwarded-for" => "203.0.113.9",
                           "x-forwarded-proto" => "https", "host" => "shop.example:8443"),
                 request(Net::HTTP::Options.new("/probes/environment")), request(Net::HTTP::Patch.new("/posts"))]
      [JSON.parse(answers.first.body), *answers.drop(1).map(&:code)]
    end

    check "a form with its token", at: :production do
      page = get("/posts/new")
      token = page.body[/name="authenticity_token" value="([^"]+)"/, 1]
      form = { "authenticity_token" => token, "post[title]" => "by form", "post[body]" => "text" }
      made = post("/posts", form, "cookie" => page["set-cookie"][/\A[^;]+/])
      refused = post("/posts", form.merge("authenticity_token" => "wrong"), HTML)
      shown = get(URI(made["location"]).path)
      [made.code, refused.code, shown.body.include?("by form")]
    end
  end
end
