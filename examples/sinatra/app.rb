# frozen_string_literal: true

require "sinatra/base"

# A notice board that keeps its notes in memory.
class Board < Sinatra::Base
  set :notes, []
  enable :inline_templates

  get "/" do
    @notes = settings.notes.last(20).reverse
    erb :index
  end

  post "/notes" do
    text = params["text"].to_s.strip
    halt 422, "A note needs a text.\n" if text.empty?

    settings.notes << text.slice(0, 200)
    redirect to("/"), 303
  end

  # Waits like any Ruby program. Only this request waits.
  get "/sleep/:seconds" do |seconds|
    content_type :text
    sleep seconds.to_f.clamp(0, 60)
    "slept #{seconds} s\n"
  end

  # Sinatra's own way to stream.
  get "/notes/slowly" do
    content_type :text
    pause = params.fetch("pause", "1").to_f.clamp(0, 60)
    notes = settings.notes.dup
    stream do |out|
      notes.each do |note|
        out << "#{note}\n"
        sleep pause
      end
      out << "That is all.\n"
    end
  end
end

__END__

@@ index
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Board</title>
<h1>Board</h1>
<form action="/notes" method="post">
  <label>Note <input name="text" maxlength="200" required></label>
  <button>Pin it</button>
</form>
<ul>
  <% @notes.each do |note| %><li><%= Rack::Utils.escape_html(note) %></li><% end %>
</ul>
