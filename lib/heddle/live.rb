# frozen_string_literal: true

require "heddle/pubsub"
require "heddle/web_socket"
require "ipaddr"
require "json"
require "openssl"
require "rack/utils"
require "securerandom"

module Heddle
  # A Rack application that serves one class of live pages. The server keeps the state of each {Page}, and renders the
  # page. The browser sends the user's events over a WebSocket, and receives the changes of the page.
  #
  #     run Heddle::Live.new(Board)
  #
  # At and below the path where it is mounted, this application serves the page, its script, and its WebSocket or the
  # WebSocket's fallback (an event stream and POST requests).
  #
  # @api private except what sig/ declares
  class Live
    Autoloads.add(self, "heddle/live")
    %i[NotFoundError Page Raw].each { |name| autoload name, "heddle/live/page" }

    SCRIPT = File.read(File.join(__dir__, "live/live.js"), encoding: "UTF-8").freeze
    # Contains a digest of the script, so that browsers can cache the script forever.
    SCRIPT_PATH = "/live-#{OpenSSL::Digest::SHA256.hexdigest(SCRIPT)[0, 12]}.js".freeze
    # @api private
    SOCKET_PATH = "/live"
    # Seconds for which a page is kept after its client has disconnected, so that the client can reconnect.
    RECONNECT_TIMEOUT = 30
    # Maximum number of pages that are kept for disconnected clients.
    MAX_KEPT = 1_000
    # Header fields of the page. They forbid inline scripts, and forbid other sites to show the page in a frame.
    FIELDS = {
      "content-type" => "text/html; charset=utf-8", "cache-control" => "no-store",
      "x-content-type-options" => "nosniff",
      "content-security-policy" => "script-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'self'"
    }.freeze
    private_constant :SCRIPT, :SCRIPT_PATH, :RECONNECT_TIMEOUT, :MAX_KEPT, :FIELDS

    # @return [Class] the class of the pages
    attr_reader :page

    # @param page [Class] a subclass of {Page}
    # @param secret [String, nil] the key that signs the parameters of pages, at least 32 bytes. nil: a random key;
    #   with it, open pages reload themselves after each reload of the server. Several machines need the same key.
    # @yieldparam env [Hash] the env of a request
    # @yieldreturn [Object, nil] identifies the page's user, such as an ID; other users can't connect to the page
    def initialize(page, secret: nil, &user)
      raise ArgumentError, "the secret has #{secret.bytesize} bytes, but needs at least 32: use SecureRandom.hex(32)" if
        secret && Arguments.string("secret:", secret).bytesize < 32

      Arguments.refuse("the page", page, "a subclass of Heddle::Live::Page") unless page.respond_to?(:own_template)
      page.own_template # raises if there is none
      @page = page
      secret ||= SecureRandom.bytes(32)
      @token = Token.new(secret, page.name)
      @fallback = WebSocket::Fallback.new(Token.new(secret, "stream of #{page.name}"), Connection::MAX_SIZE)
      @user = user || ->(_env) {}
      @sessions = {}
      @kept = {}.compare_by_identity # sessions of disconnected clients => their owners, the oldest first
    end

    # @param env [Hash]
    # @return [Array] a Rack response
    def call(env)
      return connect(env) if env["PATH_INFO"] == SOCKET_PATH
      return [405, { "allow" => "GET, HEAD" }, []] unless %w[GET HEAD].include?(env["REQUEST_METHOD"])

      case env["PATH_INFO"]
      when "", "/" then show(env)
      when SCRIPT_PATH
        [200, { "content-type" => "text/javascript", "cache-control" => "public, max-age=31536000, immutable",
                "x-content-type-options" => "nosniff" }, [SCRIPT]]
      else [404, {}, []]
      end
    end

    # @api private
    # @param token [Object] the token that the client has sent
    # @param id [Object] the ID of the client's earlier session, if any
    # @param user [String, nil]
    # @return [Session, nil] the earlier session or a new one; nil if the token is invalid or the page raised
    #   NotFoundError
    def session(token, id, user)
      params = @token.read(token, user) or return
      session = @sessions[id]
      return session.tap { @kept.delete(session) } if session&.fits?(params, user)

      session = Session.new(@page, params, user) { |ended| forget(ended) }
      session.mount
      @sessions[session.id] = session
    rescue NotFoundError
      nil
    end

    # @api private
    # @param session [Session]
    # @param client [WebSocket::ServerSocket] the disconnected client
    # @param owner [String] the client's user or network
    # @param for_good [Boolean] whether the client has closed the page, and will not reconnect
    # @return [void]
    def leave(session, client, owner, for_good)
      return unless session.detach(client, RECONNECT_TIMEOUT)
      return session.finish if for_good

      @kept[session] = owner
      return if @kept.size <= MAX_KEPT

      # Removes the oldest page of the owner that has the most kept pages, so that a user can't displace the pages of
      # others.
      oldest = @kept.key(@kept.values.tally.max_by(&:last).first)
      @kept.delete(oldest)
      oldest.finish
    end

    private

    def forget(session)
      @sessions.delete(session.id)
      @kept.delete(session)
    end

    def connect(env)
      user = user_of(env)
      owner = user || network_of(env["REMOTE_ADDR"])
      connection = Connection.new(self, user, owner)
      @fallback.call(env, user, owner) { connection } || WebSocket.upgrade(env, connection)
    end

    # A client with IPv6 can use every address of its /64, so the whole /64 counts as one client.
    def network_of(address)
      ip = IPAddr.new(address).native
      ip.ipv6? ? ip.mask(64).to_s : ip.to_s
    rescue IPAddr::Error
      address.to_s # not an IP address: "unix", or a name that a proxy sent
    end

    def user_of(env) = @user.call(env)&.to_s

    def show(env)
      params = ::Rack::Utils.parse_query(env["QUERY_STRING"])
      return [400, {}, []] unless params.flatten(-1).all? { |text| text.nil? || text.valid_encoding? }

      user = user_of(env)
      page = @page.new(nil, user)
      page.mount(params)
      [200, FIELDS.dup, [page.document(root(page, env["SCRIPT_NAME"], @token.make(params, user)),
                                       Template.escape(env["SCRIPT_NAME"] + SCRIPT_PATH))]]
    rescue ::Rack::QueryParser::InvalidParameterError, ::Rack::QueryParser::ParamsTooDeepError
      [400, {}, []]
    rescue NotFoundError
      [404, { "content-type" => "text/plain" }, ["This page does not exist.\n"]]
    end

    def root(page, base, token)
      "<div data-live=\"#{token}\" data-live-socket=\"#{Template.escape(base + SOCKET_PATH)}\">" \
        "#{@page.own_template.join(page.render_pieces)}</div>"
    end
  end
end
