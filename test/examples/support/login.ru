# frozen_string_literal: true

# A Rails application as those that real users run: a login with a session and a token against forgery, redirects, a
# Link header for each asset (and so early hints), and Action Cable for those who are logged in.

require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "action_cable/engine"

class Login < Rails::Application
  config.load_defaults 8.0
  config.root = Dir.pwd
  config.eager_load = true
  config.secret_key_base = "0" * 64
  config.logger = Logger.new($stdout, level: :warn)
  config.hosts.clear
  config.session_store :cookie_store, key: "_login"
  config.action_cable.cable = { "adapter" => "async" }
end

module ApplicationCable
  class Connection < ActionCable::Connection::Base
    identified_by :name

    def connect
      self.name = cookies.encrypted["_login"]&.fetch("name", nil) || reject_unauthorized_connection
    end
  end
end

class EchoChannel < ActionCable::Channel::Base
  def subscribed = stream_from("echo:#{name}")
  def echo(data) = ActionCable.server.broadcast("echo:#{name}", { text: "#{data["text"]}, #{name}" })
end

class SessionsController < ActionController::Base
  FORM = <<~HTML
    <!doctype html><title>Log in</title>
    <link rel="icon" href="data:,"><%= stylesheet_link_tag "/asset.css" %><%= javascript_include_tag "/asset.js" %>
    <form action="/session" method="post">
      <%= hidden_field_tag :authenticity_token, form_authenticity_token %><input name="name"><button>Log in</button>
    </form>
  HTML

  def new = render(inline: FORM)

  def create
    session[:name] = params.require(:name)
    redirect_to "/", status: :see_other
  end
end

class PagesController < ActionController::Base
  PAGE = <<~HTML
    <!doctype html><title>Page</title><link rel="icon" href="data:,"><%= stylesheet_link_tag "/asset.css" %>
    <body data-name="<%= session[:name] %>"><script>
      const identifier = JSON.stringify({ channel: "EchoChannel" })
      const socket = new WebSocket(location.origin.replace("http", "ws") + "/cable", "actioncable-v1-json")
      const send = (command, more) => socket.send(JSON.stringify({ command, identifier, ...more }))
      socket.onmessage = ({ data }) => {
        const { type, message } = JSON.parse(data)
        if (type == "welcome") send("subscribe")
        if (type == "confirm_subscription") send("message", { data: JSON.stringify({ action: "echo", text: "hello" }) })
        if (message?.text) document.body.dataset.echo = message.text
      }
    </script></body>
  HTML

  def show = session[:name] ? render(inline: PAGE) : redirect_to("/session/new")
end

Login.initialize!
Login.routes.draw do
  root "pages#show"
  get "asset.css", to: ->(_env) { [200, { "content-type" => "text/css" }, []] }
  get "asset.js", to: ->(_env) { [200, { "content-type" => "text/javascript" }, []] }
  resource :session, only: %i[new create]
  mount ActionCable.server => "/cable"
end

run Login
