#!/usr/bin/env bash
# Install, configure, start, stop and remove designate-pool; devstack sources it as: plugin.sh MODE [PHASE]
#
# What depends on the kind of server is in backend-bind9.sh and backend-secondary.sh, in functions of the same names.

# No trace: it would show the secrets.
_XTRACE_DESIGNATE_POOL=$(set +o | grep xtrace)
set +o xtrace

# Functions
# ---------

# install_designate_pool - The programs, into devstack's Python environment.
function install_designate_pool {
    if is_service_enabled key; then
        setup_develop "$DESIGNATE_POOL_DIR" keystone
    else
        setup_develop "$DESIGNATE_POOL_DIR"
    fi
    if is_service_enabled designate-pool-sink; then
        pip_install_gr python-designateclient
    fi
}

# configure_designate_pool - Folders, new secrets and a new configuration.
function configure_designate_pool {
    sudo install -d -m 750 -o "$STACK_USER" "$DESIGNATE_POOL_CONF_DIR" "$DESIGNATE_POOL_STATE_PATH"
    install -m 600 /dev/null "$DESIGNATE_POOL_CONF"

    iniset "$DESIGNATE_POOL_CONF" DEFAULT debug "$ENABLE_DEBUG_LOG_LEVEL"
    iniset "$DESIGNATE_POOL_CONF" DEFAULT state_path "$DESIGNATE_POOL_STATE_PATH"
    iniset_rpc_backend designate-pool "$DESIGNATE_POOL_CONF" DEFAULT

    # A file of its own: as a value, every $ in the password would have to be doubled.
    database_connection_url designate_pool | _designate_pool_private database.url
    iniset "$DESIGNATE_POOL_CONF" database connection "file:$DESIGNATE_POOL_CONF_DIR/database.url"

    iniset "$DESIGNATE_POOL_CONF" service:minidns listen \
        "$(_designate_pool_endpoint "$DESIGNATE_POOL_MINIDNS_PORT")"
    iniset "$DESIGNATE_POOL_CONF" service:api listen "$DESIGNATE_POOL_API_LISTEN"

    if is_service_enabled key; then
        configure_designate_pool_keystone
    fi

    local server=backend:$DESIGNATE_POOL_BACKEND:$DESIGNATE_POOL_SERVER_ID transfer_secret
    transfer_secret=$(_designate_pool_new_secret)
    _designate_pool_private transfer.key <<< "transfer.designate-pool:hmac-sha256:$transfer_secret"
    iniset "$DESIGNATE_POOL_CONF" "$server" host "$DESIGNATE_POOL_HOST"
    iniset "$DESIGNATE_POOL_CONF" "$server" port "$DESIGNATE_POOL_DNS_PORT"
    iniset "$DESIGNATE_POOL_CONF" "$server" tsig_key "file:$DESIGNATE_POOL_CONF_DIR/transfer.key"
    configure_designate_pool_server "$server" "$transfer_secret"

    "$(_designate_pool_program manage)" --config-file "$DESIGNATE_POOL_CONF" config check --offline
}

# configure_designate_pool_keystone - Tokens of Keystone for the API, and the service type dns in its catalog.
function configure_designate_pool_keystone {
    iniset "$DESIGNATE_POOL_CONF" service:api auth keystone
    printf '%s' "$SERVICE_PASSWORD" | _designate_pool_private keystone-password
    _designate_pool_account "$DESIGNATE_POOL_CONF" keystone_authtoken designate \
        "file:$DESIGNATE_POOL_CONF_DIR/keystone-password"
    iniset "$DESIGNATE_POOL_CONF" keystone_authtoken www_authenticate_uri "$KEYSTONE_SERVICE_URI"

    create_service_user designate
    get_or_create_service designate dns "DNS Service"
    get_or_create_endpoint dns "$REGION_NAME" "http://$DESIGNATE_POOL_API_LISTEN/"
}

# configure_designate_pool_neutron - Neutron makes records for ports and floating IPs.
function configure_designate_pool_neutron {
    iniset "$NEUTRON_CONF" DEFAULT external_dns_driver designate
    iniset "$NEUTRON_CONF" designate url "http://$DESIGNATE_POOL_API_LISTEN/v2"
    iniset "$NEUTRON_CONF" designate allow_reverse_dns_lookup True
    _designate_pool_account "$NEUTRON_CONF" designate neutron "$SERVICE_PASSWORD"
}

# configure_designate_pool_notifications - Nova and Neutron tell the sink of instances and floating IPs.
function configure_designate_pool_notifications {
    if is_service_enabled n-cpu; then
        iniset "$NOVA_CONF" oslo_messaging_notifications driver messagingv2
        iniset "$NOVA_CONF" notifications notification_format both
    fi
    if is_service_enabled q-svc || is_service_enabled neutron-api; then
        iniset "$NEUTRON_CONF" oslo_messaging_notifications driver messagingv2
    fi
}

# init_designate_pool - An empty database and, to go with it, a server without zones.
function init_designate_pool {
    # What still runs from a stack.sh before this one would write into what is emptied here.
    stop_designate_pool
    recreate_database designate_pool
    init_designate_pool_server

    local manage host name_servers=()
    manage=$(_designate_pool_program manage)
    for host in $DESIGNATE_POOL_NAME_SERVERS; do
        name_servers+=(--name-server "$host")
    done
    "$manage" --config-file "$DESIGNATE_POOL_CONF" database upgrade
    "$manage" --config-file "$DESIGNATE_POOL_CONF" pool set default "${name_servers[@]}"
}

# start_designate_pool - Start the server and the services; returns when the API answers.
function start_designate_pool {
    local service
    start_designate_pool_server
    for service in minidns manager api; do
        run_process "designate-pool-$service" \
            "$(_designate_pool_program "$service") --config-file $DESIGNATE_POOL_CONF"
    done
    if is_service_enabled designate-pool-api && \
            ! wait_for_service "$SERVICE_TIMEOUT" "http://$DESIGNATE_POOL_API_LISTEN/healthz"; then
        die $LINENO "designate-pool-api did not start"
    fi
}

# start_designate_pool_sink - The zone for records of instances and floating IPs, and what fills it; the API has to run.
function start_designate_pool_sink {
    local handler zone_id handlers=()
    if is_service_enabled n-cpu; then
        handlers+=(nova_fixed)
    fi
    if is_service_enabled q-svc || is_service_enabled neutron-api; then
        handlers+=(neutron_floatingip)
    fi
    if [[ ${#handlers[@]} -eq 0 ]]; then
        die $LINENO "DESIGNATE_POOL_SINK_ZONE needs Nova or Neutron, of whose resources the zone has records"
    fi
    zone_id=$(openstack --os-cloud devstack-admin zone create --email "hostmaster@${DESIGNATE_POOL_SINK_ZONE%.}" \
        -f value -c id "$DESIGNATE_POOL_SINK_ZONE")
    for handler in "${handlers[@]}"; do
        iniset "$DESIGNATE_POOL_CONF" "handler:$handler" zone_id "$zone_id"
    done
    iniset "$DESIGNATE_POOL_CONF" service:sink enabled_notification_handlers \
        "$(IFS=,; echo "${handlers[*]}")"
    run_process designate-pool-sink "$(_designate_pool_program sink) --config-file $DESIGNATE_POOL_CONF"
}

# stop_designate_pool - Stop what start_designate_pool started, those that call before those that are called.
function stop_designate_pool {
    local service
    if is_service_enabled designate-pool-sink; then
        stop_process designate-pool-sink
    fi
    for service in api manager minidns server; do
        stop_process "designate-pool-$service"
    done
}

# cleanup_designate_pool - Remove the files; the database goes with devstack's database server.
function cleanup_designate_pool {
    cleanup_designate_pool_server
    sudo rm -rf "${DESIGNATE_POOL_CONF_DIR:?}" "${DESIGNATE_POOL_STATE_PATH:?}"
}

# _designate_pool_program NAME - The path of a program, as systemd wants it: absolute.
function _designate_pool_program {
    echo "$(get_python_exec_prefix)/designate-pool-$1"
}

# _designate_pool_account FILE SECTION USER PASSWORD - Options by which a service gets its own token.
function _designate_pool_account {
    iniset "$1" "$2" auth_type password
    iniset "$1" "$2" auth_url "$KEYSTONE_SERVICE_URI"
    iniset "$1" "$2" username "$3"
    iniset "$1" "$2" password "$4"
    iniset "$1" "$2" project_name "$SERVICE_PROJECT_NAME"
    iniset "$1" "$2" user_domain_name "$SERVICE_DOMAIN_NAME"
    iniset "$1" "$2" project_domain_name "$SERVICE_DOMAIN_NAME"
}

# _designate_pool_endpoint PORT - The address of DNS with a port.
function _designate_pool_endpoint {
    case $DESIGNATE_POOL_HOST in
        *:*) echo "[$DESIGNATE_POOL_HOST]:$1" ;;
        *) echo "$DESIGNATE_POOL_HOST:$1" ;;
    esac
}

# _designate_pool_new_secret - 32 octets in Base64.
function _designate_pool_new_secret {
    head -c 32 /dev/urandom | base64 -w 0
}

# _designate_pool_private NAME < CONTENTS - A file in the configuration's folder that no one else may read.
function _designate_pool_private {
    install -m 600 /dev/null "$DESIGNATE_POOL_CONF_DIR/$1"
    cat > "$DESIGNATE_POOL_CONF_DIR/$1"
}

# Main
# ----

if is_service_enabled designate-pool; then
    if [[ ! -r $DESIGNATE_POOL_DIR/devstack/backend-$DESIGNATE_POOL_BACKEND.sh ]]; then
        die $LINENO "DESIGNATE_POOL_BACKEND is neither bind9 nor secondary: $DESIGNATE_POOL_BACKEND"
    fi
    # shellcheck source=devstack/backend-bind9.sh
    source "$DESIGNATE_POOL_DIR/devstack/backend-$DESIGNATE_POOL_BACKEND.sh"

    case ${1:-}:${2:-} in
        stack:pre-install)
            echo_summary "Installing the server of designate-pool"
            install_designate_pool_server
            ;;
        stack:install)
            echo_summary "Installing designate-pool"
            install_designate_pool
            ;;
        stack:post-config)
            echo_summary "Configuring designate-pool"
            configure_designate_pool
            if is_service_enabled key && { is_service_enabled q-svc || is_service_enabled neutron-api; }; then
                configure_designate_pool_neutron
            fi
            if is_service_enabled designate-pool-sink; then
                configure_designate_pool_notifications
            fi
            ;;
        stack:extra)
            echo_summary "Starting designate-pool"
            init_designate_pool
            start_designate_pool
            if is_service_enabled designate-pool-sink; then
                start_designate_pool_sink
            fi
            ;;
        stack:test-config)
            if is_service_enabled tempest; then
                iniset "$TEMPEST_CONFIG" service_available designate True
            fi
            ;;
        unstack:*)
            stop_designate_pool
            ;;
        clean:*)
            echo_summary "Removing designate-pool"
            cleanup_designate_pool
            ;;
    esac
fi

$_XTRACE_DESIGNATE_POOL
